//! A server in this process, connected by channels.

use std::sync::Arc;

use loomd_server::App;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{QUEUE, Transport};

/// Connects to the server; the connection is served until the client closes it.
pub(crate) fn serve(app: &Arc<App>) -> Transport {
    let (outgoing, from_client) = mpsc::channel(QUEUE);
    let (to_client, incoming) = mpsc::channel(QUEUE);
    tokio::spawn(loomd_server::serve_in_process(Arc::clone(app), from_client, to_client, CancellationToken::new()));
    Transport::new(incoming, outgoing)
}
