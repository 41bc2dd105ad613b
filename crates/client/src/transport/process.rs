//! A server process that this client spawns, on its stdin and stdout. Its stderr is inherited, or logged, and then the
//! end of it is part of [`Disconnect`].

use std::collections::VecDeque;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::{Disconnect, QUEUE, Transport, lines};
use crate::Program;

/// Bytes of stderr that are kept: enough for a panic with its backtrace.
const STDERR_TAIL: usize = 8 * 1024;

/// How long to wait for the pipes of a process that has exited, which another process may still hold.
const PIPE_GRACE: Duration = Duration::from_millis(500);

pub(crate) fn spawn(program: &Program) -> io::Result<Transport> {
    let mut command = Command::new(&program.path);
    let stderr = if program.inherits_stderr { Stdio::inherit() } else { Stdio::piped() };
    command.args(&program.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr).kill_on_drop(true);
    if let Some(folder) = &program.cwd {
        command.current_dir(folder);
    }
    for (name, value) in &program.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut child = command.spawn()?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("the process has no pipes"));
    };
    let (to_client, incoming) = mpsc::channel(QUEUE);
    let (outgoing, from_client) = mpsc::channel(QUEUE);
    let (sender, ended) = oneshot::channel();
    let close_grace = program.close_grace;
    tokio::spawn(async move {
        let (writing, reading) = (lines::write(stdin, from_client), lines::read(stdout, to_client));
        _ = sender.send(supervise(child, close_grace, writing, reading).await);
    });
    Ok(Transport { incoming, outgoing, ended: Box::pin(async { ended.await.unwrap_or_default() }) })
}

/// Waits for the end of the process, and kills it if it does not exit soon after a pipe was closed.
async fn supervise(
    mut child: Child,
    close_grace: Duration,
    writing: impl Future<Output = ()> + Send + 'static,
    reading: impl Future<Output = ()>,
) -> Disconnect {
    let tail = Tail::default();
    let logging = child.stderr.take().map(|stderr| tokio::spawn(read_stderr(stderr, tail.clone())));
    let writing = tokio::spawn(writing);
    let mut reading = Box::pin(reading);
    let closing = async {
        _ = writing.await;
        sleep(close_grace).await;
    };
    tokio::select! {
        () = &mut reading => {}
        _ = child.wait() => drop(timeout(PIPE_GRACE, &mut reading).await),
        () = closing => {}
    }
    // The receiver can still read queued messages; no more are added.
    drop(reading);
    let status = match timeout(PIPE_GRACE, child.wait()).await {
        Ok(status) => status.ok(),
        Err(_) => {
            _ = child.kill().await;
            child.wait().await.ok()
        }
    };
    if let Some(logging) = logging {
        _ = timeout(PIPE_GRACE, logging).await;
    }
    Disconnect { status, stderr: tail.text(), reason: None }
}

async fn read_stderr(mut stderr: impl AsyncRead + Unpin, tail: Tail) {
    let mut chunk = vec![0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        debug!(text = %String::from_utf8_lossy(&chunk[..count]).trim_end(), "server stderr");
        tail.append(&chunk[..count]);
    }
}

/// The last bytes of a growing text.
#[derive(Clone, Default)]
struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    fn append(&self, bytes: &[u8]) {
        let mut kept = self.0.lock();
        kept.extend(bytes);
        let excess = kept.len().saturating_sub(STDERR_TAIL);
        kept.drain(..excess);
    }

    fn text(&self) -> String {
        let mut kept = self.0.lock();
        String::from_utf8_lossy(kept.make_contiguous()).into_owned()
    }
}
