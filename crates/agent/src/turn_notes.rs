//! What a server notes about an unfinished turn, beside the rollout, so that another process can take the turn up: what
//! it was started with, input that it has not read yet, the calls whose effects have begun, and turns that wait for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use loomd_protocol::{
    Budget, JsonObject, JsonValue, OnDisconnect, ResponseItem, ServiceTier, ThreadItem, TurnToolOutput, UserInput,
};
use loomd_store::rollout::StoredSettings;
use loomd_store::{Error, Result, Store, ThreadId};
use serde::{Deserialize, Serialize};

use crate::let_go::LetGo;

/// One line of the notes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "camelCase")]
pub(crate) enum TurnNote {
    /// The first line.
    Started(Box<StartedNote>),
    /// A turn that waits for the running one.
    Queued { turn_id: String, work: NotedWork },
    /// A turn that no longer waits.
    Unqueued { turn_id: String },
    /// Input that the running turn was given.
    Input(NotedInput),
    /// What the running turn does from now on when the last client is disconnected.
    OnDisconnect { policy: OnDisconnect },
    /// The effects of a call begin. `item` is the item as it was last shown.
    CallStarted { call_id: String, item: Option<Box<ThreadItem>> },
}

/// A turn that was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StartedNote {
    pub turn_id: String,
    pub started_at_ms: i64,
    pub work: NotedWork,
    /// It was started for a queued message of the thread, which is removed at its end.
    #[serde(default)]
    pub queued_message: bool,
    pub thread: NotedThread,
    /// How often it was taken up without a record since.
    #[serde(default)]
    pub attempts: u32,
    /// The records of the turn when it was last taken up.
    #[serde(default)]
    pub records: usize,
}

/// What a turn is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(crate) enum NotedWork {
    Answer(Box<NotedAnswer>),
    Compact,
    /// A turn that is not taken up: a review, a command of the user.
    Other,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NotedAnswer {
    pub input: NotedTurnInput,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ResponseItem>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<JsonValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_turn_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_turn_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<ServiceTier>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum NotedTurnInput {
    User(NotedInput),
    Goal(String),
    Message(Box<ResponseItem>),
    ToolOutput(Box<TurnToolOutput>),
}

/// Input of the user. The id is that of its item in the rollout, once the turn has read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NotedInput {
    pub id: String,
    pub content: Vec<UserInput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

/// What a thread was opened with and the rollout does not have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NotedThread {
    pub settings: StoredSettings,
    #[serde(default, skip_serializing_if = "JsonObject::is_empty")]
    pub config: JsonObject,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub developer_instructions: Option<String>,
    pub raw_events: bool,
    pub has_environment: bool,
    pub on_disconnect: OnDisconnect,
    pub client: NotedClient,
}

/// The client that opened a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NotedClient {
    pub name: String,
    pub user_agent: String,
    pub originator: String,
    pub protocol_version: String,
    pub newer: bool,
    pub openai_form: bool,
}

/// The notes of a thread, folded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnfinishedTurn {
    pub started: StartedNote,
    /// Input that was given to it while it ran, oldest first.
    pub inputs: Vec<NotedInput>,
    /// The calls whose effects began, with their items.
    pub calls: Vec<(String, Option<ThreadItem>)>,
    /// The turns that wait for it.
    pub queued: Vec<(String, NotedWork)>,
}

impl UnfinishedTurn {
    /// Reads notes. A last line that was cut off is left out; `None` when the first one is not valid.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        let Some(TurnNote::Started(started)) = lines.next() else { return None };
        let mut turn = Self { started: *started, inputs: Vec::new(), calls: Vec::new(), queued: Vec::new() };
        for note in lines {
            match note {
                TurnNote::Started(_) => {}
                TurnNote::Queued { turn_id, work } => turn.queued.push((turn_id, work)),
                TurnNote::Unqueued { turn_id } => turn.queued.retain(|(queued, _)| *queued != turn_id),
                TurnNote::Input(input) => turn.inputs.push(input),
                TurnNote::OnDisconnect { policy } => turn.started.thread.on_disconnect = policy,
                TurnNote::CallStarted { call_id, item } => turn.calls.push((call_id, item.map(|item| *item))),
            }
        }
        Some(turn)
    }
}

/// The notes of one thread.
#[derive(Clone)]
pub(crate) struct Notes {
    store: Arc<dyn Store>,
    thread: ThreadId,
    /// Nothing is noted any more once the thread is another process's, or is loaded here anew.
    let_go: Arc<LetGo>,
}

impl Notes {
    /// `None` for a store that keeps no notes.
    pub fn new(store: &Arc<dyn Store>, thread: ThreadId, let_go: &Arc<LetGo>) -> Option<Self> {
        store.turn_notes()?;
        Some(Self { store: Arc::clone(store), thread, let_go: Arc::clone(let_go) })
    }

    /// Replaces all notes.
    pub async fn replace(&self, notes: &[TurnNote]) -> Result<()> {
        let mut lines = Vec::new();
        for note in notes {
            lines.extend(line(note)?);
        }
        self.of_store()?.replace(self.thread, lines).await
    }

    pub async fn add(&self, note: &TurnNote) -> Result<()> {
        self.of_store()?.add(self.thread, line(note)?).await
    }

    pub async fn remove(&self) -> Result<()> {
        self.of_store()?.remove(self.thread).await
    }

    fn of_store(&self) -> Result<&dyn loomd_store::TurnNotes> {
        if self.let_go.is_abandoned() {
            return Err(Error::StaleLease { id: self.thread });
        }
        self.store.turn_notes().ok_or(Error::Stopped)
    }
}

fn line(note: &TurnNote) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(note)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(notes: &[serde_json::Value]) -> Vec<u8> {
        notes.iter().flat_map(|note| format!("{note}\n").into_bytes()).collect()
    }

    fn started() -> serde_json::Value {
        json!({
            "note": "started", "turnId": "t", "startedAtMs": 1, "work": { "kind": "compact" },
            "thread": {
                "settings": {
                    "cwd": "/w", "approval_policy": "never", "model": "m",
                    "sandbox_policy": { "type": "danger-full-access" },
                },
                "rawEvents": false, "hasEnvironment": true, "onDisconnect": "pause",
                "client": {
                    "name": "c", "userAgent": "u", "originator": "o", "protocolVersion": "1", "newer": true,
                    "openaiForm": false,
                },
            },
        })
    }

    #[test]
    fn notes_are_folded_and_a_torn_line_is_left_out() {
        let mut bytes = lines(&[
            started(),
            json!({ "note": "input", "id": "i", "content": [{ "type": "text", "text": "more" }] }),
            json!({ "note": "queued", "turn_id": "q", "work": { "kind": "other" } }),
            json!({ "note": "queued", "turn_id": "r", "work": { "kind": "compact" } }),
            json!({ "note": "callStarted", "call_id": "c", "item": null }),
            json!({ "note": "unqueued", "turn_id": "q" }),
            json!({ "note": "onDisconnect", "policy": "interrupt" }),
        ]);
        bytes.extend(br#"{"note":"callStarted","call_"#);
        let turn = UnfinishedTurn::parse(&bytes).unwrap();
        assert_eq!((turn.started.turn_id.as_str(), turn.started.thread.on_disconnect), ("t", OnDisconnect::Interrupt));
        assert_eq!(turn.inputs.iter().map(|input| input.id.as_str()).collect::<Vec<_>>(), ["i"]);
        assert_eq!(turn.calls, [("c".to_owned(), None)]);
        assert_eq!(turn.queued, [("r".to_owned(), NotedWork::Compact)]);
    }

    #[test]
    fn notes_without_a_start_are_invalid() {
        for bytes in [&b""[..], b"\n", b"{}\n", b"\xff\n", br#"{"note":"unqueued","turn_id":"t"}"#] {
            assert_eq!(UnfinishedTurn::parse(bytes), None);
        }
    }
}
