//! [`Inbox`]: every message of a server on one connection, in order, and waiting for one of them.
//!
//! A message can be taken once, so that two waits for the same method give two messages. Transports add messages;
//! [`Peer`](crate::Peer) interprets them.

use std::fmt::Write;

use loomd_protocol::{Incoming, JsonValue};

use crate::watched_value::WatchedValue;
use crate::{CapturedOutput, TIMEOUT};

/// Number of messages in the panic of a failed wait, the latest ones.
const MAX_NAMED: usize = 60;

pub(crate) struct Inbox {
    state: WatchedValue<InboxState>,
    stderr: Option<CapturedOutput>,
}

#[derive(Default)]
struct InboxState {
    forgotten: usize,
    messages: Vec<Entry>,
    end: Option<End>,
}

struct Entry {
    message: JsonValue,
    taken: bool,
}

#[derive(Clone)]
enum End {
    Closed,
    Broken(String),
}

impl Inbox {
    /// `stderr` is quoted when a wait fails.
    pub(crate) fn new(stderr: Option<CapturedOutput>) -> Self {
        Self { state: WatchedValue::default(), stderr }
    }

    /// Adds one message. The first invalid one ends the inbox, and every later wait panics with it.
    pub(crate) fn receive(&self, bytes: &[u8]) {
        let message = Incoming::parse(bytes)
            .map_err(|error| error.to_string())
            .and_then(|_| serde_json::from_slice::<JsonValue>(bytes).map_err(|error| error.to_string()));
        match message {
            Ok(message) => self.state.update(|state| state.messages.push(Entry { message, taken: false })),
            Err(reason) => self.fail(format!("{reason}: {}", String::from_utf8_lossy(bytes))),
        }
    }

    pub(crate) fn fail(&self, reason: String) {
        self.state.update(|state| state.end.get_or_insert(End::Broken(reason)).clone());
    }

    pub(crate) fn close(&self) {
        self.state.update(|state| state.end.get_or_insert(End::Closed).clone());
    }

    /// The first message, past or future, that matches and was not taken yet.
    pub(crate) async fn take(&self, what: &str, matches: impl Fn(&JsonValue) -> bool) -> JsonValue {
        let mut next = 0;
        let found = self.state.until(|state| {
            next = next.max(state.forgotten);
            while let Some(entry) = state.messages.get_mut(next - state.forgotten) {
                next += 1;
                if !entry.taken && matches(&entry.message) {
                    entry.taken = true;
                    return Some(Ok(entry.message.clone()));
                }
            }
            state.end.clone().map(Err)
        });
        match tokio::time::timeout(TIMEOUT, found).await {
            Ok(Ok(message)) => message,
            Ok(Err(End::Closed)) => panic!("the server ended the connection before {what}{}", self.context()),
            Ok(Err(End::Broken(reason))) => panic!("expected {what}, got no message: {reason}{}", self.context()),
            Err(_) => panic!("no {what} within {TIMEOUT:?}{}", self.context()),
        }
    }

    /// Waits for the end of the connection.
    pub(crate) async fn closed(&self) {
        let end = self.state.until(|state| state.end.clone());
        match tokio::time::timeout(TIMEOUT, end).await {
            Ok(End::Closed) => {}
            Ok(End::Broken(reason)) => panic!("expected the end, got no message: {reason}{}", self.context()),
            Err(_) => panic!("the connection is still open after {TIMEOUT:?}{}", self.context()),
        }
    }

    pub(crate) fn messages(&self) -> Vec<JsonValue> {
        self.state.read(|state| state.messages.iter().map(|entry| entry.message.clone()).collect())
    }

    pub(crate) fn clear(&self) {
        self.state.update(|state| {
            state.forgotten += state.messages.len();
            state.messages.clear();
        });
    }

    /// What a failed wait adds to its panic.
    pub(crate) fn context(&self) -> String {
        let messages = self.messages();
        let named: Vec<String> = messages.iter().skip(messages.len().saturating_sub(MAX_NAMED)).map(name).collect();
        let mut context = format!("; seen so far ({}): [{}]", messages.len(), named.join(", "));
        if let Some(stderr) = &self.stderr {
            let _ = write!(context, "; stderr: {}", stderr.tail());
        }
        context
    }
}

fn name(message: &JsonValue) -> String {
    match (&message["method"], &message["id"]) {
        (JsonValue::String(method), JsonValue::Null) => method.clone(),
        (JsonValue::String(method), id) => format!("{method} (request {id})"),
        (_, id) if message.get("error").is_some() => format!("error to {id}"),
        (_, id) => format!("response to {id}"),
    }
}
