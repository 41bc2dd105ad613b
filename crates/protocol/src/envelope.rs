//! The envelope: JSON-RPC 2.0 without the `jsonrpc` member.
//!
//! [`Incoming::parse`] classifies a line or frame without decoding its params. The `encode_*` functions write outgoing
//! messages; each returns one line without its newline.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::{JsonValue, RpcError};

/// The id of a request. The response carries the same value of the same type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RequestId {
    String(String),
    Integer(i64),
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(id) => write!(f, "{id:?}"),
            Self::Integer(id) => write!(f, "{id}"),
        }
    }
}

/// The caller's position in a distributed trace (W3C Trace Context).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct W3cTraceContext {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
}

/// A classified message with undecoded params.
#[derive(Debug)]
pub enum Incoming<'a> {
    Request {
        id: RequestId,
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
        trace: Option<W3cTraceContext>,
        event_id: Option<Cow<'a, str>>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
        event_id: Option<Cow<'a, str>>,
    },
    Response {
        id: RequestId,
        result: &'a RawValue,
    },
    Error {
        id: RequestId,
        error: RpcError,
    },
}

impl<'a> Incoming<'a> {
    /// Classifies one message. A repeated member invalidates only the kinds of message that use it, so a request with
    /// two ids is a notification.
    pub fn parse(text: &'a [u8]) -> Result<Self, ParseError> {
        let text = std::str::from_utf8(text).map_err(|_| ParseError::NotUtf8)?;
        let members: Members<'a> = serde_json::from_str(text).map_err(ParseError::NotJson)?;
        members.classify().ok_or(ParseError::UnknownShape)
    }

    /// Returns the id of a truncated request, if its head contains the id.
    pub fn find_request_id(head: &[u8]) -> Option<RequestId> {
        let mut found = RequestHead::default();
        // The text is truncated, so this always fails; `found` keeps what was read.
        _ = (&mut found).deserialize(&mut serde_json::Deserializer::from_slice(head));
        found.method.and(found.id)
    }
}

/// The two members that make a request, as far as they were read.
#[derive(Default)]
struct RequestHead {
    id: Option<RequestId>,
    method: Option<IgnoredAny>,
}

impl<'de> DeserializeSeed<'de> for &mut RequestHead {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut RequestHead {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "id" => self.id = Some(map.next_value()?),
                "method" => self.method = Some(map.next_value()?),
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }
}

/// Why a line or frame is not a message. Logged, and never sent to the peer.
#[derive(Debug)]
pub enum ParseError {
    NotUtf8,
    NotJson(serde_json::Error),
    /// JSON, but neither request, notification, response nor error.
    UnknownShape,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUtf8 => write!(f, "not UTF-8"),
            // Omits the parser's own message, which would repeat the text, whatever it contains.
            Self::NotJson(error) => {
                write!(
                    f,
                    "not a JSON object ({:?} error at line {}, column {})",
                    error.classify(),
                    error.line(),
                    error.column()
                )
            }
            Self::UnknownShape => write!(f, "neither request, notification, response nor error"),
        }
    }
}

impl std::error::Error for ParseError {}

/// A member of the envelope, which may be repeated.
#[derive(Default)]
enum Member<'a> {
    #[default]
    Absent,
    Once(&'a RawValue),
    Twice,
}

impl<'a> Member<'a> {
    fn put(&mut self, value: &'a RawValue) {
        *self = match self {
            Self::Absent => Self::Once(value),
            Self::Once(_) | Self::Twice => Self::Twice,
        };
    }

    fn read<T: Deserialize<'a>>(&self) -> Option<T> {
        match self {
            Self::Once(raw) => serde_json::from_str(raw.get()).ok(),
            Self::Absent | Self::Twice => None,
        }
    }

    /// An optional member: `Some(None)` when absent or null, `None` when repeated.
    fn optional(&self) -> Option<Option<&'a RawValue>> {
        match self {
            Self::Absent => Some(None),
            Self::Once(raw) if raw.get() == "null" => Some(None),
            Self::Once(raw) => Some(Some(raw)),
            Self::Twice => None,
        }
    }
}

#[derive(Default)]
struct Members<'a> {
    id: Member<'a>,
    method: Member<'a>,
    params: Member<'a>,
    trace: Member<'a>,
    result: Member<'a>,
    error: Member<'a>,
    event_id: Member<'a>,
}

impl<'a> Members<'a> {
    fn classify(self) -> Option<Incoming<'a>> {
        let id = self.id.read::<RequestId>();
        if let (Some(BorrowedStr(method)), Some(params)) = (self.method.read(), self.params.optional()) {
            let trace = match self.trace.optional() {
                Some(None) => Some(None),
                Some(Some(raw)) => serde_json::from_str(raw.get()).ok().map(Some),
                None => None,
            };
            let event_id = self.event_id.read().map(|BorrowedStr(event_id)| event_id);
            return Some(match (id, trace) {
                (Some(id), Some(trace)) => Incoming::Request { id, method, params, trace, event_id },
                _ => Incoming::Notification { method, params, event_id },
            });
        }
        let id = id?;
        match self.result {
            Member::Once(result) => Some(Incoming::Response { id, result }),
            _ => self.error.read().map(|error| Incoming::Error { id, error }),
        }
    }
}

/// A string that is borrowed from the input when it has no escapes.
#[derive(Deserialize)]
struct BorrowedStr<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Members::default();
                while let Some(BorrowedStr(name)) = map.next_key()? {
                    let member = match &*name {
                        "id" => &mut members.id,
                        "method" => &mut members.method,
                        "params" => &mut members.params,
                        "trace" => &mut members.trace,
                        "result" => &mut members.result,
                        "error" => &mut members.error,
                        "eventId" => &mut members.event_id,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    member.put(map.next_value()?);
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

/// `{"id", "result"}`
pub fn encode_response(id: &RequestId, result: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Response<'a, R> {
        id: &'a RequestId,
        result: &'a R,
    }
    serde_json::to_vec(&Response { id, result })
}

/// `{"id", "error"}`
pub fn encode_error(id: &RequestId, error: &RpcError) -> Vec<u8> {
    #[derive(Serialize)]
    struct Failure<'a> {
        id: &'a RequestId,
        error: &'a RpcError,
    }
    serde_json::to_vec(&Failure { id, error }).unwrap_or_default()
}

/// `{"method", "params", "emittedAtMs"}`, without those of the last two that there are none of.
pub fn encode_notification(
    method: &str,
    params: Option<&impl Serialize>,
    emitted_at_ms: Option<i64>,
) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Notification<'a, P> {
        method: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<&'a P>,
        #[serde(skip_serializing_if = "Option::is_none")]
        emitted_at_ms: Option<i64>,
    }
    serde_json::to_vec(&Notification { method, params, emitted_at_ms })
}

/// `{"method", "id", "params"}`
pub fn encode_request(id: &RequestId, method: &str, params: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Request<'a, P> {
        method: &'a str,
        id: &'a RequestId,
        params: &'a P,
    }
    serde_json::to_vec(&Request { method, id, params })
}

/// Returns an encoded notification or request with the member `eventId` at its end.
pub fn with_event_id(message: &[u8], event_id: &impl fmt::Display) -> Vec<u8> {
    let head = message.strip_suffix(b"}").unwrap_or(message);
    let mut marked = Vec::with_capacity(head.len() + 64);
    marked.extend_from_slice(head);
    marked.extend_from_slice(format!(",\"eventId\":\"{event_id}\"}}").as_bytes());
    marked
}

/// The four kinds of message as types, for the generated schemas.
pub(crate) mod schema {
    #![allow(dead_code, reason = "only their schemas are used")]

    use super::*;

    /// Any message.
    #[derive(JsonSchema)]
    #[schemars(rename = "JSONRPCMessage", untagged)]
    pub(crate) enum Message {
        Request(Request),
        Notification(Notification),
        Response(Response),
        Error(Failure),
    }

    /// A request, which expects a response.
    #[derive(JsonSchema)]
    #[schemars(rename = "JSONRPCRequest")]
    pub(crate) struct Request {
        id: RequestId,
        method: String,
        params: Option<JsonValue>,
        /// The caller's position in a distributed trace.
        trace: Option<W3cTraceContext>,
        /// The place of a server request among the events of its thread, for clients that announced `eventIds`.
        #[serde(rename = "eventId")]
        event_id: Option<String>,
    }

    /// A message without a response.
    #[derive(JsonSchema)]
    #[schemars(rename = "JSONRPCNotification")]
    pub(crate) struct Notification {
        method: String,
        params: Option<JsonValue>,
        /// The place among the events of a thread, for clients that announced `eventIds`.
        #[serde(rename = "eventId")]
        event_id: Option<String>,
    }

    /// The response to a successful request.
    #[derive(JsonSchema)]
    #[schemars(rename = "JSONRPCResponse")]
    pub(crate) struct Response {
        id: RequestId,
        result: JsonValue,
    }

    /// The response to a failed request.
    #[derive(JsonSchema)]
    #[schemars(rename = "JSONRPCError")]
    pub(crate) struct Failure {
        error: RpcError,
        id: RequestId,
    }
}
