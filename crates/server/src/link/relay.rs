//! What passes from another node to the client: answers under the client's ids, events of threads, and server requests
//! under ids of this server.

use std::sync::Arc;

use bytes::Bytes;
use loomd_protocol::{
    Incoming, JsonValue, RequestId, RpcError, ServerNotification, ServerRequestResolvedNotification, Turn, encode_error,
};
use loomd_store::ThreadId;
use serde::Deserialize;
use serde_json::value::RawValue;
use tracing::warn;

use super::followed::{Followed, Seen};
use super::{Asked, Link, Links, Outcome, Pending, PendingKind};
use crate::nodes::{NOT_OWNER, RELEASED};
use crate::outbound::Notification;

/// Which thread a message is about.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct About {
    thread_id: Option<String>,
    thread: Option<AboutThread>,
}

#[derive(Deserialize)]
struct AboutThread {
    id: String,
}

/// What the answers that subscribe a client have in common.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenedThread {
    thread: ThreadWithTurns,
    event_id: Option<String>,
    #[serde(default)]
    open_item_ids: Vec<String>,
    replay: Option<String>,
}

#[derive(Deserialize)]
struct ThreadWithTurns {
    id: String,
    #[serde(default)]
    turns: Vec<Turn>,
}

impl Links {
    /// Takes a message of another node.
    pub(super) fn relay(self: &Arc<Self>, link: &Arc<Link>, text: &str) {
        match Incoming::parse(text.as_bytes()) {
            Ok(Incoming::Response { id, result }) => self.answered(link, &id, Ok(result)),
            Ok(Incoming::Error { id, error }) => self.answered(link, &id, Err(error)),
            Ok(Incoming::Notification { method, params, event_id }) => {
                self.notified(link, text, &method, params, event_id.as_deref());
            }
            Ok(Incoming::Request { id, params, .. }) => self.requested(link, text, id, params),
            Err(error) => warn!(%error, node = link.node.0, "ignoring an invalid message of another node"),
        }
    }

    fn answered(self: &Arc<Self>, link: &Arc<Link>, id: &RequestId, answer: Result<&RawValue, RpcError>) {
        let RequestId::Integer(call) = id else { return };
        let Some(Pending { kind, done, .. }) = link.pending.lock().remove(call) else { return };
        if answer.as_ref().err().is_some_and(is_not_owner) {
            _ = done.send(Outcome::NotOwner);
            return;
        }
        let outcome = match kind {
            PendingKind::Client { id, method } => {
                match &answer {
                    Ok(result) => {
                        self.subscribed(link, &method, result);
                        self.outbound.reply(self.response(&id, result));
                    }
                    Err(error) => self.outbound.reply(encode_error(&id, error)),
                }
                Outcome::Answered
            }
            PendingKind::Follow { thread } => match answer {
                Ok(result) => {
                    self.follows_again(link, thread, result);
                    Outcome::Answered
                }
                Err(error) => Outcome::Refused(error),
            },
        };
        _ = done.send(outcome);
    }

    /// The answer as the client is sent it.
    fn response(&self, id: &RequestId, result: &RawValue) -> Vec<u8> {
        const OPEN_ITEMS: &str = "openItemIds";
        let id = serde_json::to_string(id).unwrap_or_default();
        let mut text = result.get().to_owned();
        // The other node tells this one, which the client did not ask for.
        if !self.has_event_ids()
            && text.contains(OPEN_ITEMS)
            && let Ok(JsonValue::Object(mut members)) = serde_json::from_str(&text)
        {
            members.shift_remove(OPEN_ITEMS);
            text = JsonValue::Object(members).to_string();
        }
        format!("{{\"id\":{id},\"result\":{text}}}").into_bytes()
    }

    pub(super) fn has_event_ids(&self) -> bool {
        self.handshake.get().is_some_and(|handshake| handshake.client.event_ids)
    }

    /// Notes that an answer has subscribed the client to a thread.
    fn subscribed(&self, link: &Link, method: &str, result: &RawValue) {
        if !matches!(method, "thread/start" | "thread/resume" | "thread/fork") {
            return;
        }
        let Ok(opened) = serde_json::from_str::<OpenedThread>(result.get()) else { return };
        let Ok(id) = opened.thread.id.parse::<ThreadId>() else { return };
        // A thread that can be resumed has turns; this client is not shown them.
        let is_partial = method == "thread/resume" && opened.thread.turns.is_empty();
        let seen = Seen { is_partial, ..Seen::of_snapshot(&opened.thread.turns, &opened.open_item_ids) };
        self.following.lock().follow(id, Followed { link: link.id, last_event: opened.event_id, seen });
    }

    /// Sends the client what it has missed of a thread, which goes on at this link from now on.
    fn follows_again(&self, link: &Link, thread: ThreadId, result: &RawValue) {
        let opened: OpenedThread = match serde_json::from_str(result.get()) {
            Ok(opened) => opened,
            Err(error) => return warn!(%error, %thread, "the answer of another node cannot be read"),
        };
        let OpenedThread { thread: ThreadWithTurns { turns, .. }, event_id, open_item_ids, replay } = opened;
        let is_complete = replay.as_deref() == Some("complete");
        let before = self.following.lock().found(thread, link.id, event_id, &turns, &open_item_ids, is_complete);
        if let Some(seen) = before {
            self.catch_up(thread, &seen, &turns, &open_item_ids);
        }
    }

    fn notified(
        self: &Arc<Self>,
        link: &Arc<Link>,
        text: &str,
        method: &str,
        params: Option<&RawValue>,
        event_id: Option<&str>,
    ) {
        let about: Option<About> = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let about = about.and_then(|about| about.thread_id.or(about.thread.map(|thread| thread.id)));
        // What concerns no thread is about the other node, not about this one.
        let Some(thread_id) = about else { return };
        let thread = thread_id.parse::<ThreadId>().ok();
        if method == RELEASED {
            if let Some(thread) = thread {
                self.move_thread(link.id, thread);
            }
            return;
        }
        if let Some(thread) = thread
            && !self.following.lock().note(link.id, thread, method, params, event_id)
        {
            return;
        }
        match method {
            "serverRequest/resolved" => self.resolved(link, text),
            _ => self.outbound.request(Bytes::copy_from_slice(text.as_bytes())),
        }
    }

    /// A server request of another node gets an id of this server.
    fn requested(&self, link: &Arc<Link>, text: &str, id: RequestId, params: Option<&RawValue>) {
        let about: Option<About> = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let Ok(JsonValue::Object(mut message)) = serde_json::from_str(text) else { return };
        let known = self.app.server_requests.next_id();
        message.insert("id".into(), known.into());
        let thread_id = about.and_then(|about| about.thread_id);
        self.asked.lock().insert(known, Asked { link: Arc::clone(link), id, thread_id, is_answered: false });
        self.outbound.request(JsonValue::Object(message).to_string().into());
    }

    /// A server request of another node is no longer open there.
    fn resolved(&self, link: &Arc<Link>, text: &str) {
        let Ok(mut message) = serde_json::from_str::<JsonValue>(text) else { return };
        let Ok(id) = serde_json::from_value::<RequestId>(message["params"]["requestId"].clone()) else { return };
        let mut asked = self.asked.lock();
        let known = asked.iter().find(|(_, asked)| Arc::ptr_eq(&asked.link, link) && asked.id == id);
        let Some(known) = known.map(|(known, _)| *known) else { return };
        asked.remove(&known);
        drop(asked);
        message["params"]["requestId"] = known.into();
        self.outbound.request(message.to_string().into());
    }

    /// Tells the client that the open server requests of a link are no longer.
    pub(super) fn withdraw_requests(&self, link: &Arc<Link>) {
        let mut withdrawn = Vec::new();
        self.asked.lock().retain(|known, asked| {
            let is_of_link = Arc::ptr_eq(&asked.link, link);
            if is_of_link && let Some(thread_id) = asked.thread_id.clone() {
                withdrawn.push((*known, thread_id));
            }
            !is_of_link
        });
        for (known, thread_id) in withdrawn {
            let request_id = RequestId::Integer(known);
            self.notify(ServerNotification::ServerRequestResolved(ServerRequestResolvedNotification {
                thread_id,
                request_id,
            }));
        }
    }

    /// Sends the client a notification that it wants.
    pub(super) fn notify(&self, notification: ServerNotification) {
        let Some(handshake) = self.handshake.get() else { return };
        let notification = Notification::new(notification);
        if handshake.client.wants(&notification) {
            self.outbound.send_now(&notification);
        }
    }
}

/// Whether an error says that the thread is not the node's.
fn is_not_owner(error: &RpcError) -> bool {
    error.data.as_ref().is_some_and(|data| data["reason"] == NOT_OWNER)
}
