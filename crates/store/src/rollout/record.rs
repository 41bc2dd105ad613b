//! Decoded lines, and how they are written.

use std::borrow::Cow;

use loomd_protocol::ResponseItem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::line::put_envelope;
use super::{ApprovalAudit, Compacted, Event, SessionMeta, TurnContext};

/// The decoded payload of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// The identity and origin of the thread. Only the first one in a file counts.
    SessionMeta(Box<SessionMeta>),
    /// The settings of a turn.
    TurnContext(Box<TurnContext>),
    /// An item of the conversation with the model.
    ResponseItem(ResponseItem),
    /// The history before this line was summarised.
    Compacted(Compacted),
    /// Something that happened, for showing.
    EventMsg(Event),
    /// An approval that has ended.
    Approval(ApprovalAudit),
}

impl Record {
    /// The line kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::SessionMeta(_) => "session_meta",
            Self::TurnContext(_) => "turn_context",
            Self::ResponseItem(_) => "response_item",
            Self::Compacted(_) => "compacted",
            Self::EventMsg(_) => "event_msg",
            Self::Approval(_) => "loomd_approval",
        }
    }

    pub(super) fn decode(kind: &str, payload: &RawValue) -> Option<Self> {
        fn read<T: DeserializeOwned>(payload: &RawValue) -> Option<T> {
            serde_json::from_str(payload.get()).ok()
        }
        Some(match kind {
            "session_meta" => Self::SessionMeta(read(payload)?),
            "turn_context" => Self::TurnContext(read(payload)?),
            "response_item" => Self::ResponseItem(read(payload)?),
            "compacted" => Self::Compacted(read(payload)?),
            "event_msg" => Self::EventMsg(Event::decode(payload.get())?),
            "loomd_approval" => Self::Approval(read(payload)?),
            _ => return None,
        })
    }
}

/// Appends one whole line. Returns false, and appends nothing, for the one record that has no stored
/// form: a response item of a kind that this release does not know.
pub fn write_line(out: &mut Vec<u8>, timestamp: &str, record: &Record) -> serde_json::Result<bool> {
    let start = out.len();
    put_envelope(out, timestamp, record.kind());
    let written = match record {
        Record::SessionMeta(meta) => put(out, meta),
        Record::TurnContext(context) => put(out, context),
        Record::ResponseItem(ResponseItem::Other) => {
            out.truncate(start);
            return Ok(false);
        }
        Record::ResponseItem(item) => put(out, &without_id(item)),
        Record::Compacted(compacted) => put(out, &stored_compacted(compacted)),
        Record::EventMsg(event) => put(out, event),
        Record::Approval(approval) => put(out, approval),
    };
    if let Err(error) = written {
        out.truncate(start);
        return Err(error);
    }
    out.extend_from_slice(b"}\n");
    Ok(true)
}

fn put(out: &mut Vec<u8>, payload: &impl Serialize) -> serde_json::Result<()> {
    payload.serialize(&mut serde_json::Serializer::new(out))
}

/// The ids that a model service gives to its items are not stored, except of generated images.
fn without_id(item: &ResponseItem) -> Cow<'_, ResponseItem> {
    use ResponseItem::*;
    let mut item = Cow::Borrowed(item);
    if let Message { id: Some(_), .. }
    | LocalShellCall { id: Some(_), .. }
    | FunctionCall { id: Some(_), .. }
    | ToolSearchCall { id: Some(_), .. }
    | CustomToolCall { id: Some(_), .. }
    | WebSearchCall { id: Some(_), .. } = &*item
        && let Message { id, .. }
        | LocalShellCall { id, .. }
        | FunctionCall { id, .. }
        | ToolSearchCall { id, .. }
        | CustomToolCall { id, .. }
        | WebSearchCall { id, .. } = item.to_mut()
    {
        *id = None;
    }
    item
}

fn stored_compacted(compacted: &Compacted) -> Cow<'_, Compacted> {
    let Some(history) = &compacted.replacement_history else { return Cow::Borrowed(compacted) };
    let history = history.iter().filter(|item| !matches!(item, ResponseItem::Other));
    Cow::Owned(Compacted {
        message: compacted.message.clone(),
        replacement_history: Some(history.map(|item| without_id(item).into_owned()).collect()),
    })
}
