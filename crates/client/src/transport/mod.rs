//! Transports. Whatever carries the bytes, the rest of the crate sees a [`Transport`]: two bounded channels of whole
//! messages, and how the connection ended.

#[cfg(feature = "in-process")]
mod in_process;
mod lines;
mod process;
mod tls;
mod websocket;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::process::ExitStatus;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::sleep;

#[cfg(feature = "in-process")]
pub(crate) use in_process::serve;
pub(crate) use process::spawn;
pub(crate) use websocket::{open_unix, open_url};

/// Capacity of the channels. The receiver never waits for subscribers, so this only absorbs bursts.
const QUEUE: usize = 128;

/// Longest message that is accepted. Responses hold whole histories, with images.
const MAX_MESSAGE: usize = 256 * 1024 * 1024;

/// How long a server may take to exit after the client has closed. It may have turns to interrupt and store.
pub(crate) const CLOSE_GRACE: Duration = Duration::from_secs(10);

/// How long a server that does not read may take to accept what was queued when the client closed.
const UNREAD_GRACE: Duration = Duration::from_secs(2);

/// How often a blocked write checks whether the client has closed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// One open connection.
///
/// Dropping `outgoing` closes the client's side; `incoming` ends when the server has closed its side.
pub struct Transport {
    pub(crate) incoming: mpsc::Receiver<Bytes>,
    pub(crate) outgoing: mpsc::Sender<Bytes>,
    pub(crate) ended: Pin<Box<dyn Future<Output = Disconnect> + Send>>,
}

impl Transport {
    /// A connection over two channels of messages, for a custom transport.
    pub fn new(incoming: mpsc::Receiver<Bytes>, outgoing: mpsc::Sender<Bytes>) -> Self {
        Self { incoming, outgoing, ended: Box::pin(async { Disconnect::default() }) }
    }

    /// A connection over a pair of pipes with a message per line.
    pub fn over_lines(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let (to_client, incoming) = mpsc::channel(QUEUE);
        let (outgoing, from_client) = mpsc::channel(QUEUE);
        tokio::spawn(async move {
            // Runs beside the reader, as either pipe may end first.
            tokio::spawn(lines::write(writer, from_client));
            lines::read(reader, to_client).await;
        });
        Self::new(incoming, outgoing)
    }
}

/// Resolves when the client has closed and [`UNREAD_GRACE`] has passed, so that a server that does not read cannot
/// delay the end.
async fn abandoned(from_client: &mpsc::Receiver<Bytes>) {
    while !from_client.is_closed() {
        sleep(POLL_INTERVAL).await;
    }
    sleep(UNREAD_GRACE).await;
}

/// How a connection ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disconnect {
    /// The exit status of a spawned server.
    pub status: Option<ExitStatus>,
    /// The end of a spawned server's stderr.
    pub stderr: String,
    /// The error, if one is known.
    pub reason: Option<String>,
}

impl fmt::Display for Disconnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.status, &self.reason) {
            (Some(status), _) => write!(f, "the server exited with {status}")?,
            (None, Some(reason)) => f.write_str(reason)?,
            (None, None) => f.write_str("the server closed the connection")?,
        }
        match self.stderr.trim_end() {
            "" => Ok(()),
            stderr => write!(f, "; stderr:\n{stderr}"),
        }
    }
}
