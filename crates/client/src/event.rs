//! [`Event`]: a notification of the server, or a change of the connection, with the thread and turn that it belongs
//! to.

use std::sync::Arc;

use loomd_protocol::{JsonValue, RpcError, ServerNotification, ThreadResumeResponse};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Disconnect, lenient};

#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub thread_id: Option<String>,
    pub turn_id: Option<String>,
    /// The place among the events of its thread, if the server numbers them. Ids of a thread rise; they are no longer
    /// than 128 bits.
    pub event_id: Option<u128>,
    pub kind: EventKind,
}

#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// A notification.
    Notification(Box<ServerNotification>),
    /// A notification whose method or params this release does not know.
    Other { method: String, params: JsonValue },
    /// The connection was lost and is being made again. Events that are missing from here on follow, or the state of
    /// their thread does ([`Resumed`](Self::Resumed)).
    Lost(Arc<Disconnect>),
    /// Connected again, with all threads resumed.
    Reconnected,
    /// A thread was resumed, by this client or after a reconnect. Holds the thread's state at this point of its
    /// events. After a reconnect this is a reset: it replaces missing events that the server no longer has. If it has
    /// them, they follow instead, each once.
    Resumed(Box<ThreadResumeResponse>),
    /// A thread could not be resumed after a reconnect.
    NotResumed(Box<RpcError>),
}

impl Event {
    /// The notification, for [`EventKind::Notification`].
    pub fn notification(&self) -> Option<&ServerNotification> {
        match &self.kind {
            EventKind::Notification(notification) => Some(notification),
            _ => None,
        }
    }

    /// The method, for a known or unknown notification.
    pub fn method(&self) -> Option<&str> {
        match &self.kind {
            EventKind::Notification(notification) => Some(notification.method()),
            EventKind::Other { method, .. } => Some(method),
            _ => None,
        }
    }

    pub(crate) fn decode(method: &str, params: Option<&RawValue>) -> Self {
        let scope: EventScope = params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        let kind = match ServerNotification::decode(method, params) {
            Ok(notification) => EventKind::Notification(notification.into()),
            Err(_) => {
                let mut value = params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
                match lenient::decode_notification(method, &mut value) {
                    Some(notification) => EventKind::Notification(notification.into()),
                    None => EventKind::Other { method: method.to_owned(), params: value },
                }
            }
        };
        let EventScope { thread_id, turn_id, thread, turn } = scope;
        let id = |whole: Option<WithId>| whole.map(|whole| whole.id);
        Self {
            thread_id: thread_id.or_else(|| id(thread)),
            turn_id: turn_id.or_else(|| id(turn)),
            event_id: None,
            kind,
        }
    }

    pub(crate) fn of_thread(thread_id: impl Into<String>, kind: EventKind) -> Self {
        Self { thread_id: Some(thread_id.into()), turn_id: None, event_id: None, kind }
    }

    pub(crate) fn of_connection(kind: EventKind) -> Self {
        Self { thread_id: None, turn_id: None, event_id: None, kind }
    }
}

/// The ids of thread and turn in params, either as ids or as whole objects.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EventScope {
    thread_id: Option<String>,
    turn_id: Option<String>,
    thread: Option<WithId>,
    turn: Option<WithId>,
}

/// The id of an object whose other fields are skipped.
#[derive(Deserialize)]
pub(crate) struct WithId {
    pub(crate) id: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(method: &str, params: &JsonValue, thread: Option<&str>, turn: Option<&str>) -> Event {
        let raw = RawValue::from_string(params.to_string()).unwrap();
        let event = Event::decode(method, Some(&raw));
        assert_eq!((event.thread_id.as_deref(), event.turn_id.as_deref()), (thread, turn), "{method}");
        assert_eq!(event.method(), Some(method));
        event
    }

    #[test]
    fn notifications_yield_their_thread_and_turn_ids() {
        let delta = json!({ "threadId": "t", "turnId": "u", "itemId": "i", "delta": "x" });
        check("item/agentMessage/delta", &delta, Some("t"), Some("u"));
        let turn = json!({ "threadId": "t", "turn": { "id": "u", "items": [], "status": "completed", "error": null } });
        check("turn/completed", &turn, Some("t"), Some("u"));
        check("thread/closed", &json!({ "threadId": "t" }), Some("t"), None);
        check("configWarning", &json!({ "summary": "s", "details": null }), None, None);
        check("thread/started", &json!({ "thread": { "id": "t" } }), Some("t"), None);
    }

    #[test]
    fn unknown_notifications_become_other_events() {
        let params = json!({ "threadId": "t", "goal": 5 });
        let event = check("thread/goal/updated", &params, Some("t"), None);
        assert_eq!(event.kind, EventKind::Other { method: "thread/goal/updated".into(), params });
        assert_eq!(
            Event::decode("no/params", None).kind,
            EventKind::Other { method: "no/params".into(), params: JsonValue::Null }
        );
    }
}
