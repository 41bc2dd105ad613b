//! What other nodes say to everybody: each node listens to each other one, so that its clients are told of all threads,
//! and lists show their status.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use futures_util::{SinkExt, StreamExt};
use loomd_ownership::NodeId;
use loomd_protocol::{Incoming, ServerNotification, ThreadStatus};
use serde_json::json;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use crate::connections::Connections;
use crate::nodes::{KnownNode, Nodes};
use crate::outbound::Notification;
use crate::upstream::{HEADER_LINK, HEADER_NODE, Upstream};

/// The pause before a node is connected to again.
const RECONNECT: Duration = Duration::from_secs(1);

/// Listens to all other nodes as they come and go.
pub(crate) async fn observe(nodes: Arc<Nodes>, connections: Arc<Connections>) {
    let mut changes = nodes.known.changes();
    let mut listening: HashMap<NodeId, AbortOnDropHandle<()>> = HashMap::new();
    loop {
        let known = nodes.known.all();
        listening.retain(|id, _| known.iter().any(|node| node.id == *id));
        for node in known.into_iter().filter(|node| node.url.is_some()) {
            listening.entry(node.id).or_insert_with(|| {
                let listen = listen(Arc::clone(&nodes), Arc::clone(&connections), node);
                AbortOnDropHandle::new(tokio::spawn(listen))
            });
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

async fn listen(nodes: Arc<Nodes>, connections: Arc<Connections>, node: KnownNode) {
    let _forgotten = Forget { nodes: Arc::clone(&nodes), node: node.id };
    while !node.gone.is_cancelled() {
        if let Err(reason) = hear(&nodes, &connections, &node).await {
            debug!(node = node.id.0, reason, "another node is not heard");
        }
        nodes.elsewhere.forget(node.id);
        tokio::select! {
            () = sleep(RECONNECT) => {}
            () = node.gone.cancelled() => {}
        }
    }
}

/// Forgets what a node has said, also when listening is given up.
struct Forget {
    nodes: Arc<Nodes>,
    node: NodeId,
}

impl Drop for Forget {
    fn drop(&mut self) {
        self.nodes.elsewhere.forget(self.node);
    }
}

async fn hear(nodes: &Nodes, connections: &Connections, node: &KnownNode) -> Result<(), String> {
    let url = node.url.as_deref().ok_or("it takes no requests of other nodes")?;
    let token = nodes.options.token.as_ref().ok_or("this node has no token for others")?;
    let upstream = Upstream { address: url.parse()?, token: Some(token.as_str().to_owned()) };
    let headers = [(HEADER_NODE, HeaderValue::from(nodes.id.0)), (HEADER_LINK, HeaderValue::from_static("observer"))];
    let mut socket = upstream.connect_with(&headers).await.map_err(|error| error.to_string())?;
    let initialize = json!({ "id": 0, "method": "initialize", "params": {
        "clientInfo": { "name": "loomd-node", "version": env!("CARGO_PKG_VERSION") },
        "capabilities": { "experimentalApi": true },
    } });
    socket.send(Message::text(initialize.to_string())).await.map_err(|error| error.to_string())?;
    loop {
        let message = tokio::select! {
            message = socket.next() => message,
            () = node.gone.cancelled() => return Ok(()),
        };
        let Message::Text(text) = message.ok_or("it closed the connection")?.map_err(|error| error.to_string())? else {
            continue;
        };
        let Ok(Incoming::Notification { method, params, .. }) = Incoming::parse(text.as_bytes()) else { continue };
        if !method.starts_with("thread/") {
            continue;
        }
        let Ok(notification) = ServerNotification::decode(&method, params) else { continue };
        note(nodes, node.id, &notification);
        let notification = Notification::new(notification);
        // A client with a link to the node hears it there, in the order of the thread's events.
        let others = |connection: crate::connections::ConnectionId, is_node: bool| {
            !is_node && !nodes.is_linked(connection.0, node.id)
        };
        connections.broadcast_to(others, &notification).await;
    }
}

fn note(nodes: &Nodes, node: NodeId, notification: &ServerNotification) {
    let (id, status) = match notification {
        ServerNotification::ThreadStatusChanged(changed) => (&changed.thread_id, changed.status.clone()),
        ServerNotification::ThreadStarted(started) => (&started.thread.id, started.thread.status.clone()),
        ServerNotification::ThreadClosed(closed) => (&closed.thread_id, ThreadStatus::NotLoaded),
        _ => return,
    };
    if let Ok(id) = id.parse() {
        nodes.elsewhere.set(node, id, status);
    }
}
