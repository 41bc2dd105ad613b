//! [`RecordedRequest`]: a request to the scripted model.

use loomd_protocol::JsonValue;

use crate::Headers;
use crate::http::Head;

#[derive(Clone, Debug, PartialEq)]
pub struct RecordedRequest {
    pub method: String,
    /// With its query.
    pub path: String,
    pub headers: Headers,
    /// Null if the body is not JSON.
    pub body: JsonValue,
    pub bytes: Vec<u8>,
    pub(super) abandoned: bool,
}

impl RecordedRequest {
    pub(super) fn new(head: Head, bytes: Vec<u8>) -> Self {
        let mut words = head.line.split(' ').map(str::to_owned);
        Self {
            method: words.next().unwrap_or_default(),
            path: words.next().unwrap_or_default(),
            headers: head.headers,
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
            bytes,
            abandoned: false,
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }

    /// Every text of the user in the input, in order.
    pub fn user_texts(&self) -> Vec<&str> {
        self.input()
            .iter()
            .filter(|item| item["type"] == "message" && item["role"] == "user")
            .flat_map(|item| item["content"].as_array().into_iter().flatten())
            .filter_map(|part| part["text"].as_str())
            .collect()
    }

    /// The output of a tool call in this request.
    pub fn tool_output(&self, call_id: &str) -> Option<&JsonValue> {
        let output = |item: &&JsonValue| {
            item["call_id"] == call_id && item["type"].as_str().is_some_and(|kind| kind.ends_with("_output"))
        };
        self.input().iter().find(output).map(|item| &item["output"])
    }

    pub(super) fn is_model_call(&self) -> bool {
        let routes = ["/responses", "/chat/completions", "/messages"];
        self.method == "POST" && (routes.iter().any(|route| self.route().ends_with(route)) || self.is_compaction())
    }

    pub(super) fn is_compaction(&self) -> bool {
        self.route().ends_with("/responses/compact")
    }

    pub(super) fn route(&self) -> &str {
        self.path.split('?').next().unwrap_or_default().trim_end_matches('/')
    }

    fn input(&self) -> &[JsonValue] {
        self.body["input"].as_array().map_or(&[], Vec::as_slice)
    }
}
