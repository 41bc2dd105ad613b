//! One link: it connects, makes the client's handshake, and passes messages on in both directions until either side
//! ends or the node is gone.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use axum::http::HeaderValue;
use futures_util::{SinkExt, StreamExt};
use loomd_ownership::NodeId;
use loomd_protocol::{Incoming, RequestId};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tracing::debug;

use super::followed::LinkId;
use super::{Link, Links, Outgoing};
use crate::limits;
use crate::nodes::KnownNode;
use crate::upstream::{ConnectError, HEADER_LINK, HEADER_NODE, HEADER_REMOTE, HEADER_ROLE, Upstream, UpstreamSocket};

/// The id of the handshake.
const HANDSHAKE: i64 = 0;

impl Links {
    /// The link to a node, made if there is none.
    pub(super) fn link(self: &Arc<Self>, node: NodeId) -> Arc<Link> {
        let mut links = self.links.lock();
        if let Some(link) = links.get(&node) {
            return Arc::clone(link);
        }
        let (queue, outgoing) = mpsc::unbounded_channel();
        let link = Arc::new(Link {
            id: LinkId(self.next_link.fetch_add(1, Ordering::Relaxed)),
            node,
            queue,
            pending: Mutex::default(),
            next: AtomicI64::new(1),
            refused: OnceLock::new(),
        });
        links.insert(node, Arc::clone(&link));
        tokio::spawn(run(Arc::clone(self), Arc::clone(&link), outgoing));
        link
    }
}

async fn run(links: Arc<Links>, link: Arc<Link>, mut outgoing: mpsc::UnboundedReceiver<Outgoing>) {
    let ended = serve(&links, &link, &mut outgoing).await;
    if let Err(reason) = ended {
        debug!(node = link.node.0, reason, "a link to another node ended");
    }
    links.links.lock().remove(&link.node);
    // Nothing can be queued from now on.
    outgoing.close();
    links.nodes.set_linked(links.connection.0, link.node, false);
    let unanswered: Vec<i64> = link.pending.lock().keys().copied().collect();
    for call in unanswered {
        link.give_up(call);
    }
    if !links.ended.is_cancelled() {
        links.lost(&link);
    }
}

async fn serve(
    links: &Arc<Links>,
    link: &Arc<Link>,
    outgoing: &mut mpsc::UnboundedReceiver<Outgoing>,
) -> Result<(), String> {
    let known = links.nodes.find(link.node).await.ok_or("it is not live")?;
    let gone = known.gone.clone();
    let work = async {
        let mut socket = connect(links, &known).await.map_err(|error| {
            if let ConnectError::Refused(reason) = &error {
                _ = link.refused.set(reason.clone());
            }
            error.to_string()
        })?;
        links.nodes.set_linked(links.connection.0, link.node, true);
        pass(links, link, &mut socket, outgoing).await
    };
    tokio::select! {
        passed = work => passed,
        () = gone.cancelled() => Err("it is live no longer".into()),
        () = links.ended.cancelled() => Ok(()),
    }
}

async fn connect(links: &Links, known: &KnownNode) -> Result<UpstreamSocket, ConnectError> {
    let refused = |reason: &str| ConnectError::Refused(reason.to_owned());
    let url = known.url.as_deref().ok_or_else(|| refused("it was started without `--node-token-file`"))?;
    let token = links.nodes.options.token.as_ref();
    let token = token.ok_or_else(|| refused("this node was started without `--node-token-file`"))?;
    let handshake = links.handshake.get().ok_or_else(|| refused("the client has not made its handshake"))?;
    let upstream = Upstream { address: url.parse()?, token: Some(token.as_str().to_owned()) };
    let mut headers = vec![
        (HEADER_NODE, HeaderValue::from(links.nodes.id.0)),
        (HEADER_LINK, HeaderValue::from_static("client")),
        (HEADER_REMOTE, HeaderValue::from_static(if links.is_remote { "true" } else { "false" })),
    ];
    if let Some(role) = links.role
        && let Ok(role) = HeaderValue::from_str(&role.to_string())
    {
        headers.push((HEADER_ROLE, role));
    }
    let mut socket = upstream.connect_with(&headers).await?;
    let initialize = format!("{{\"id\":{HANDSHAKE},\"method\":\"initialize\",\"params\":{}}}", handshake.params);
    let shaken = async {
        socket.send(Message::text(initialize)).await.map_err(|error| error.to_string())?;
        loop {
            let message = socket.next().await.ok_or("it closed the connection")?.map_err(|error| error.to_string())?;
            let Message::Text(text) = message else { continue };
            match Incoming::parse(text.as_bytes()) {
                Ok(Incoming::Response { id: RequestId::Integer(HANDSHAKE), .. }) => break,
                Ok(Incoming::Error { id: RequestId::Integer(HANDSHAKE), error }) => return Err(error.message),
                // Warnings about that node.
                _ => {}
            }
        }
        let initialized = Message::text("{\"method\":\"initialized\"}");
        socket.send(initialized).await.map_err(|error| error.to_string())
    };
    timeout(limits::HEADERS, shaken).await.map_err(|_| "no answer to the handshake".to_owned())??;
    Ok(socket)
}

/// Passes messages on. A message of the node waits until the client has room for it, so that the node sees how fast the
/// client reads; those to the node do not wait for that.
async fn pass(
    links: &Arc<Links>,
    link: &Arc<Link>,
    socket: &mut UpstreamSocket,
    outgoing: &mut mpsc::UnboundedReceiver<Outgoing>,
) -> Result<(), String> {
    let mut held: Option<Utf8Bytes> = None;
    loop {
        tokio::select! {
            message = outgoing.recv() => {
                let Some(Outgoing { call, json }) = message else { return Ok(()) };
                if let Some(call) = call
                    && let Some(pending) = link.pending.lock().get_mut(&call)
                {
                    pending.is_sent = true;
                }
                let time = limits::time_to_take(json.len());
                let sent = timeout(time, socket.send(Message::text(json))).await;
                sent.map_err(|_| "it takes too little".to_owned())?.map_err(|error| error.to_string())?;
            }
            () = links.outbound.has_stream_room(), if held.is_some() => {
                if let Some(text) = held.take() {
                    links.relay(link, &text);
                }
            }
            message = socket.next(), if held.is_none() => {
                match message.ok_or("it closed the connection")?.map_err(|error| error.to_string())? {
                    Message::Text(text) => held = Some(text),
                    Message::Close(_) => return Err("it closed the connection".into()),
                    _ => {}
                }
            }
        }
    }
}
