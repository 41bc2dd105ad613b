//! Decodes the messages of a server. Results and params stay JSON: their users know what they expect.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use loomd_protocol::{JsonObject, JsonValue};
use rmcp::ErrorData;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, CustomRequest, CustomResult, ErrorCode, InitializeResult,
    PingRequest, ProtocolVersion, RequestId, ServerCapabilities, ServerJsonRpcMessage, ServerNotification,
    ServerRequest, ServerResult,
};
use serde::Deserialize;

use crate::caller::Progress;
use crate::inbound::OriginOf;

/// The code of an error that stands in for an answer that was too large to read.
pub(crate) const OVERSIZED: i32 = -32099;

/// A message, or what is made of one here.
#[derive(Debug)]
pub(super) enum Decoded {
    Message(Box<ServerJsonRpcMessage>),
    Progress { token: RequestId, progress: Progress },
    ToolsChanged,
}

/// Decodes messages in order.
#[derive(Default)]
pub(super) struct Decoder {
    queue: VecDeque<Decoded>,
    /// What the server says of itself in the answer to `initialize`, which comes first.
    introduction: Arc<OnceLock<JsonObject>>,
    /// How many messages were no messages.
    garbage: u64,
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    id: Option<JsonValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<JsonValue>,
    #[serde(default)]
    result: Option<JsonValue>,
    #[serde(default)]
    error: Option<ErrorObject>,
}

#[derive(Deserialize)]
struct ErrorObject {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(Box<Envelope>),
    Many(Vec<Envelope>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProgressParams {
    progress_token: JsonValue,
    #[serde(default)]
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl Decoder {
    pub fn new(introduction: Arc<OnceLock<JsonObject>>) -> Self {
        Self { introduction, ..Self::default() }
    }

    pub fn next(&mut self) -> Option<Decoded> {
        self.queue.pop_front()
    }

    /// Adds a message that was made here.
    pub fn put(&mut self, message: ServerJsonRpcMessage) {
        self.queue.push_back(Decoded::Message(Box::new(message)));
    }

    /// Decodes a message. `origin` is the request on whose answer stream it came. What is no message is counted and
    /// dropped: some servers print to stdout.
    pub fn decode(&mut self, bytes: &[u8], origin: Option<&RequestId>, server: &str) {
        let bytes = bytes.trim_ascii();
        if bytes.is_empty() {
            return;
        }
        let before = self.queue.len();
        let decoded = match bytes[0] {
            b'[' => serde_json::from_slice(bytes).map(OneOrMany::Many),
            _ => serde_json::from_slice(bytes).map(|one| OneOrMany::One(Box::new(one))),
        };
        match decoded {
            Ok(OneOrMany::One(envelope)) => self.take(*envelope, origin),
            Ok(OneOrMany::Many(batch)) => batch.into_iter().for_each(|envelope| self.take(envelope, origin)),
            Err(_) => {}
        }
        if decoded_nothing(before, self.queue.len()) {
            self.garbage += 1;
            if self.garbage.is_power_of_two() {
                tracing::debug!(server, times = self.garbage, "an MCP server sent what is no message or not used");
            }
        }
    }

    /// Stands in for a message that was too large to be read.
    pub fn too_large(&mut self, id: Option<RequestId>, server: &str) {
        tracing::warn!(server, "an MCP server sent a message beyond the limit");
        if let Some(id) = id {
            let error = ErrorData::new(ErrorCode(OVERSIZED), "the message is larger than the limit", None);
            self.queue.push_back(Decoded::Message(Box::new(ServerJsonRpcMessage::error(error, Some(id)))));
        }
    }

    fn take(&mut self, envelope: Envelope, origin: Option<&RequestId>) {
        let Envelope { id, method, params, result, error } = envelope;
        let id = id.as_ref().and_then(request_id);
        let decoded = match (method, id) {
            (Some(method), Some(id)) => Some(Decoded::Message(Box::new(request(method, params, id, origin)))),
            (Some(method), None) => notification(&method, params),
            (None, Some(id)) => Some(Decoded::Message(Box::new(match error {
                Some(error) => {
                    let code = ErrorCode(error.code.clamp(i32::MIN.into(), i32::MAX.into()) as i32);
                    ServerJsonRpcMessage::error(ErrorData::new(code, error.message, None), Some(id))
                }
                None => self.response(result.unwrap_or_default(), id),
            }))),
            (None, None) => None,
        };
        self.queue.extend(decoded);
    }

    fn response(&mut self, result: JsonValue, id: RequestId) -> ServerJsonRpcMessage {
        if self.introduction.get().is_some() {
            return ServerJsonRpcMessage::response(ServerResult::CustomResult(CustomResult(result)), id);
        }
        match introduced(&result) {
            Ok(initialized) => {
                let _ = self.introduction.set(result.as_object().cloned().unwrap_or_default());
                ServerJsonRpcMessage::response(ServerResult::InitializeResult(initialized), id)
            }
            Err(problem) => {
                let problem = format!("invalid result of initialize: {problem}");
                ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::INVALID_REQUEST, problem, None), Some(id))
            }
        }
    }
}

/// The part of the result of `initialize` that the service loop needs. The rest may be as odd as it likes.
fn introduced(result: &JsonValue) -> Result<InitializeResult, String> {
    let version = result.get("protocolVersion").filter(|version| version.is_string());
    let version = version.ok_or("missing field `protocolVersion`")?;
    let version: ProtocolVersion = serde_json::from_str(&version.to_string()).map_err(|error| error.to_string())?;
    let mut initialized = InitializeResult::new(ServerCapabilities::default());
    initialized.protocol_version = version;
    Ok(initialized)
}

fn decoded_nothing(before: usize, after: usize) -> bool {
    before == after
}

fn request_id(id: &JsonValue) -> Option<RequestId> {
    match id {
        JsonValue::Number(number) => number.as_i64().map(RequestId::Number),
        JsonValue::String(text) => Some(RequestId::String(text.as_str().into())),
        _ => None,
    }
}

fn request(
    method: String,
    params: Option<JsonValue>,
    id: RequestId,
    origin: Option<&RequestId>,
) -> ServerJsonRpcMessage {
    if method == "ping" {
        return ServerJsonRpcMessage::request(ServerRequest::PingRequest(PingRequest::default()), id);
    }
    let mut request = CustomRequest::new(method, params);
    if let Some(origin) = origin {
        request.extensions.insert(OriginOf(origin.clone()));
    }
    ServerJsonRpcMessage::request(ServerRequest::CustomRequest(request), id)
}

fn notification(method: &str, params: Option<JsonValue>) -> Option<Decoded> {
    match method {
        "notifications/progress" => {
            let params: ProgressParams = serde_json::from_str(&params?.to_string()).ok()?;
            let ProgressParams { progress_token, progress, total, message } = params;
            let token = request_id(&progress_token)?;
            Some(Decoded::Progress { token, progress: Progress { progress, total, message } })
        }
        "notifications/tools/list_changed" => Some(Decoded::ToolsChanged),
        "notifications/cancelled" => {
            let id = request_id(params?.get("requestId")?)?;
            let cancelled = CancelledNotification::new(CancelledNotificationParam::new(Some(id), None));
            let cancelled = ServerNotification::CancelledNotification(cancelled);
            Some(Decoded::Message(Box::new(ServerJsonRpcMessage::notification(cancelled))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(messages: &[&str]) -> Vec<String> {
        let mut decoder = Decoder::default();
        decoder.introduction.set(JsonObject::new()).unwrap();
        messages.iter().for_each(|message| decoder.decode(message.as_bytes(), None, "srv"));
        std::iter::from_fn(|| decoder.next())
            .map(|decoded| match decoded {
                Decoded::Message(message) => match *message {
                    ServerJsonRpcMessage::Response(response) => format!("response {}", response.id),
                    ServerJsonRpcMessage::Error(error) => format!("error {}", error.error.message),
                    ServerJsonRpcMessage::Request(request) => format!("request {}", request.id),
                    ServerJsonRpcMessage::Notification(_) => "notification".into(),
                },
                Decoded::Progress { token, progress } => format!("progress {token} {}", progress.progress),
                Decoded::ToolsChanged => "tools".into(),
            })
            .collect()
    }

    #[test]
    fn garbage_between_messages_is_dropped() {
        let decoded = decode(&[
            "Listening on port 3",
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "{",
            "[1,2]",
            "null",
            "\u{0}\u{1}",
            r#"{"id":{},"result":1}"#,
            r#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#,
            r#"{"method":"notifications/message","params":{"level":"info","data":"d"}}"#,
            r#"{"method":"notifications/tools/list_changed"}"#,
            r#"{"method":"notifications/progress","params":{"progressToken":4,"progress":0.5}}"#,
            r#"{"method":"notifications/progress"}"#,
            r#"{"method":"notifications/cancelled","params":{"requestId":"x"}}"#,
            r#"[{"id":2,"error":{"code":-1,"message":"no"}},{"id":3}]"#,
        ]);
        let expected = ["response 1", "request x", "tools", "progress 4 0.5", "notification", "error no", "response 3"];
        assert_eq!(decoded, expected);
    }

    #[test]
    fn an_invalid_result_of_initialize_is_an_error_that_says_so() {
        let mut decoder = Decoder::default();
        decoder.decode(br#"{"id":0,"result":{"capabilities":{}}}"#, None, "srv");
        let Some(Decoded::Message(message)) = decoder.next() else { panic!("no message") };
        let ServerJsonRpcMessage::Error(error) = *message else { panic!("no error") };
        assert!(
            error.error.message.starts_with("invalid result of initialize: missing field `protocolVersion`"),
            "{:?}",
            error.error
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            Decoder::default().decode(&bytes, None, "srv");
        }
    }
}
