//! One client on stdin and stdout, a JSON object per line.
//!
//! Both pipes may be shared with other programs, so their mode is left alone: a thread reads, a thread
//! writes, and both handle a pipe that another program made non-blocking. Only messages are written to stdout.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, poll};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::lines::Lines;
use crate::app::App;
use crate::connection::{self, Inbound, PeerKind, Source};
use crate::limits;
use crate::outbound::{OutboundQueue, WhenFull};

/// Serves the one client until it closes stdin or a signal comes.
pub(super) async fn serve(app: Arc<App>, stop: CancellationToken) -> io::Result<()> {
    let outbound = Arc::new(OutboundQueue::new(WhenFull::Wait));
    let (lines, received) = mpsc::channel(limits::INBOUND_QUEUE);
    let ended = CancellationToken::new();
    let reader = Reader { lines, room: Arc::new(Semaphore::new(BUDGET)), runtime: Handle::current() };
    let end_of_input = ended.clone().drop_guard();
    // The pipes themselves: the standard handles have buffers that do not mix with partial writes.
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    thread::Builder::new().name("stdin".into()).spawn(move || {
        reader.read(input);
        drop(end_of_input);
    })?;
    let (written, all_written) = oneshot::channel();
    let to_write = Arc::clone(&outbound);
    let runtime = Handle::current();
    thread::Builder::new().name("stdout".into()).spawn(move || {
        runtime.block_on(write(output, &to_write));
        _ = written.send(());
    })?;
    connection::serve(app, "stdio", PeerKind::default(), StdinMessages { lines: received, ended }, outbound, stop)
        .await;
    if timeout(limits::DRAIN, all_written).await.is_err() {
        warn!("the client did not read all messages before the end");
    }
    Ok(())
}

/// [`limits::INBOUND_BYTES`] in the units of the semaphore.
const UNIT: usize = 1024;
const BUDGET: usize = limits::INBOUND_BYTES / UNIT;

/// A message and its share of the budget.
type Line = (Inbound, Option<OwnedSemaphorePermit>);

struct StdinMessages {
    lines: mpsc::Receiver<Line>,
    ended: CancellationToken,
}

impl Source for StdinMessages {
    async fn next(&mut self) -> Option<Inbound> {
        let (inbound, _) = self.lines.recv().await?;
        Some(inbound)
    }

    fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        self.ended.clone().cancelled_owned()
    }
}

struct Reader {
    lines: mpsc::Sender<Line>,
    room: Arc<Semaphore>,
    runtime: Handle,
}

impl Reader {
    fn read(&self, mut input: File) {
        let mut splitter = Lines::new(limits::MAX_LINE, limits::OVERSIZED_HEAD);
        let mut buffer = vec![0; 64 * 1024];
        let mut enqueue = |inbound| self.enqueue(inbound);
        loop {
            match input.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => splitter.feed(&buffer[..count], &mut enqueue),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(&input, PollFlags::IN),
                Err(error) => {
                    error!(%error, "cannot read stdin");
                    break;
                }
            }
        }
        splitter.finish(&mut enqueue);
    }

    /// Waits for room in the inbound queue. The message is dropped when the server is stopping.
    fn enqueue(&self, inbound: Inbound) {
        let bytes = match &inbound {
            Inbound::Message(message) | Inbound::Oversized(message) => message.len(),
        };
        let share = u32::try_from((bytes / UNIT).min(BUDGET)).unwrap_or(u32::MAX);
        let share = match Arc::clone(&self.room).try_acquire_many_owned(share) {
            Ok(share) => Some(share),
            Err(_) => self.runtime.block_on(Arc::clone(&self.room).acquire_many_owned(share)).ok(),
        };
        _ = self.lines.blocking_send((inbound, share));
    }
}

async fn write(mut output: File, outbound: &OutboundQueue) {
    while let Ok(batch) = outbound.next().await {
        if let Err(error) = write_batch(&mut output, batch) {
            // The only client is gone.
            warn!(%error, "cannot write to stdout");
            outbound.cut();
            break;
        }
    }
}

/// Small messages go out together, large ones without being copied.
fn write_batch(output: &mut File, batch: Vec<Bytes>) -> io::Result<()> {
    let mut small = Vec::new();
    for message in batch {
        if message.len() < limits::WRITE_BATCH {
            small.extend_from_slice(&message);
        } else {
            write_all(output, &small)?;
            small.clear();
            write_all(output, &message)?;
        }
        small.push(b'\n');
    }
    write_all(output, &small)
}

fn write_all(output: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match output.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(output, PollFlags::OUT),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sleeps until a pipe that does not block is ready.
fn wait(pipe: &File, ready: PollFlags) {
    _ = poll(&mut [PollFd::new(pipe, ready)], None);
}
