//! Ways to reach a server. Whatever carries the bytes, the rest of the crate sees a [`Transport`]: two bounded
//! queues of whole messages, and a word about the end.

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

/// Messages that wait on either side. The client takes in what comes without waiting for anybody, so this only
/// has to smooth a burst.
const QUEUE: usize = 128;

/// The longest message. DynHandler hold whole histories, with images; more than this is no answer to anything.
const MAX_MESSAGE: usize = 256 * 1024 * 1024;

/// How long a server may take to leave after it was told to. It may have turns to interrupt and write down.
const CLOSE_GRACE: Duration = Duration::from_secs(10);

/// How long a server that does not read is given to take what the client said before it left.
const UNREAD_GRACE: Duration = Duration::from_secs(2);

/// How often a write that takes long looks whether anybody still cares.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// One open connection.
///
/// The server is told that the client leaves by the end of `outgoing`, and has left when `incoming` ends.
pub struct Transport {
    pub(crate) incoming: mpsc::Receiver<Bytes>,
    pub(crate) outgoing: mpsc::Sender<Bytes>,
    pub(crate) ended: Pin<Box<dyn Future<Output = Disconnect> + Send>>,
}

impl Transport {
    /// A connection over two queues of messages, for a transport of one's own.
    pub fn new(incoming: mpsc::Receiver<Bytes>, outgoing: mpsc::Sender<Bytes>) -> Self {
        Self { incoming, outgoing, ended: Box::pin(async { Disconnect::default() }) }
    }

    /// A connection over a pair of pipes with a message per line, wherever they lead.
    pub fn over_lines(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let (to_client, incoming) = mpsc::channel(QUEUE);
        let (outgoing, from_client) = mpsc::channel(QUEUE);
        tokio::spawn(async move {
            // The pipe that the server reads may end first and the other go on.
            tokio::spawn(lines::write(writer, from_client));
            lines::read(reader, to_client).await;
        });
        Self::new(incoming, outgoing)
    }
}

/// Resolves when the client has left and what it still had to say was given time enough. A server that does not read
/// must not hold up the end.
async fn abandoned(from_client: &mpsc::Receiver<Bytes>) {
    while !from_client.is_closed() {
        sleep(POLL_INTERVAL).await;
    }
    sleep(UNREAD_GRACE).await;
}

/// How a connection ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disconnect {
    /// Of a server that this client started.
    pub status: Option<ExitStatus>,
    /// The last that a server that this client started wrote to stderr.
    pub stderr: String,
    /// What went wrong, where that is known.
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
            stderr => write!(f, "; its last words were:\n{stderr}"),
        }
    }
}
