//! One client on stdin and stdout, a JSON object per line.
//!
//! Both pipes are blocking, and may be shared with other programs, so they stay blocking: a thread
//! reads, a thread writes. Nothing but messages goes to stdout.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::thread;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::lines::Lines;
use crate::app::App;
use crate::connection::{self, Inbound, Source};
use crate::limits;
use crate::outbox::{Outbox, WhenFull};

/// Serves the one client until it closes stdin or a signal comes.
pub(super) async fn serve(app: Arc<App>, stop: CancellationToken) {
    let outbox = Arc::new(Outbox::new(WhenFull::Wait));
    let (lines, inbound) = mpsc::channel(limits::INBOUND_QUEUE);
    let (written, all_written) = oneshot::channel();
    let handle = Handle::current();
    let to_write = Arc::clone(&outbox);
    let started =
        thread::Builder::new().name("stdin".into()).spawn(move || read(io::stdin().lock(), &lines)).and_then(|_| {
            thread::Builder::new().name("stdout".into()).spawn(move || {
                handle.block_on(write(io::stdout().lock(), &to_write));
                _ = written.send(());
            })
        });
    if let Err(error) = started {
        error!(%error, "cannot start the threads for stdin and stdout");
        return;
    }
    connection::serve(app, "stdio", inbound, outbox, stop).await;
    if timeout(limits::DRAIN, all_written).await.is_err() {
        warn!("giving up on a client that does not read");
    }
}

impl Source for mpsc::Receiver<Inbound> {
    async fn next(&mut self) -> Option<Inbound> {
        self.recv().await
    }
}

fn read(mut input: impl Read, lines: &mpsc::Sender<Inbound>) {
    let mut splitter = Lines::new(limits::MAX_LINE, limits::OVERSIZED_HEAD);
    let mut buffer = vec![0; 64 * 1024];
    // The receiver is gone when the server stops; what is still read then is nobody's.
    let mut give = |inbound| _ = lines.blocking_send(inbound);
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => splitter.feed(&buffer[..count], &mut give),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                error!(%error, "cannot read stdin");
                break;
            }
        }
    }
    splitter.finish(&mut give);
}

async fn write(mut output: impl Write, outbox: &Outbox) {
    let mut buffer = Vec::new();
    while let Ok(batch) = outbox.next().await {
        for message in batch {
            buffer.extend_from_slice(&message);
            buffer.push(b'\n');
        }
        if let Err(error) = output.write_all(&buffer).and_then(|()| output.flush()) {
            // Nobody reads any more; requests that are still to come are worked on without an answer.
            warn!(%error, "cannot write to stdout");
            outbox.cut();
            break;
        }
        buffer.clear();
        buffer.shrink_to(2 * limits::WRITE_BATCH);
    }
}
