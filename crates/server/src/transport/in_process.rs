//! One client in the same process: messages pass between tasks, without bytes on a pipe.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::connection::{self, Inbound, PeerKind, Source};
use crate::outbound::{OutboundQueue, WhenFull};

/// Serves a client that exchanges whole messages, until it drops its sender or `stop` is cancelled. As on stdio,
/// senders wait for a client that does not read.
pub async fn serve_in_process(
    app: Arc<App>,
    from_client: mpsc::Receiver<Bytes>,
    to_client: mpsc::Sender<Bytes>,
    stop: CancellationToken,
) {
    let outbound = Arc::new(OutboundQueue::new(WhenFull::Wait));
    let writing = write(Arc::clone(&outbound), to_client);
    let ours = Arc::clone(&app);
    app.join_nodes(None);
    join(
        connection::serve(app, "in-process", PeerKind::default(), ClientMessages(from_client), outbound, stop),
        writing,
    )
    .await;
    ours.leave_nodes().await;
    ours.flush().await;
}

struct ClientMessages(mpsc::Receiver<Bytes>);

impl Source for ClientMessages {
    async fn next(&mut self) -> Option<Inbound> {
        self.0.recv().await.map(Inbound::Message)
    }
}

async fn write(outbound: Arc<OutboundQueue>, to_client: mpsc::Sender<Bytes>) {
    while let Ok(batch) = outbound.next().await {
        for message in batch {
            if to_client.send(message).await.is_err() {
                return outbound.cut();
            }
        }
    }
}
