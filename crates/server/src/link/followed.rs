//! What a client has seen of a thread that another node owns: enough to tell it, after that node was lost, what it has
//! missed.

use std::collections::HashSet;

use loomd_protocol::{ThreadItem, Turn, TurnStatus};
use serde::Deserialize;
use serde_json::value::RawValue;

/// One link of a connection. A next link to the same node is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkId(pub u64);

/// A thread of another node that a client has subscribed to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Followed {
    /// The link that its events come from.
    pub link: LinkId,
    /// The id of the last event, if the client is sent ids.
    pub last_event: Option<String>,
    pub seen: Seen,
}

/// The turns that a client has seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    /// The turn that it has seen to begin and not to end.
    pub open: Option<OpenTurn>,
    /// The last turn that it has seen to end.
    pub ended: Option<String>,
    /// It did not want to be shown turns. What was before its first event is not missed.
    pub is_partial: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OpenTurn {
    pub id: String,
    /// Items that have begun and not completed.
    pub started: Vec<ThreadItem>,
    /// Items that have completed.
    pub completed: HashSet<String>,
    /// The client has not seen how it began. Its first items are not missed.
    pub is_partial: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TurnEvent {
    turn: TurnHead,
}

#[derive(Deserialize)]
struct TurnHead {
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemEvent {
    item: ThreadItem,
    turn_id: String,
}

impl Seen {
    /// What a client that got a snapshot with these turns has seen. `open_items` are those that have not completed.
    pub fn of_snapshot(turns: &[Turn], open_items: &[String]) -> Self {
        let is_running = |item: &&ThreadItem| open_items.iter().any(|id| id == item.id());
        let is_open = |turn: &&Turn| turn.status == TurnStatus::InProgress;
        let open = turns.last().filter(is_open).map(|turn| OpenTurn {
            id: turn.id.clone(),
            started: turn.items.iter().filter(is_running).cloned().collect(),
            completed: turn.items.iter().filter(|item| !is_running(item)).map(|item| item.id().to_owned()).collect(),
            is_partial: false,
        });
        let ended = turns.iter().rev().find(|turn| !is_open(turn)).map(|turn| turn.id.clone());
        Self { open, ended, is_partial: false }
    }

    /// The turn of an event about an item, if it is the open one.
    fn turn_of_item(&mut self, turn_id: &str) -> Option<&mut OpenTurn> {
        if self.is_partial && self.open.is_none() {
            self.open = Some(OpenTurn { id: turn_id.to_owned(), is_partial: true, ..OpenTurn::default() });
        }
        self.open.as_mut().filter(|open| open.id == turn_id)
    }

    /// Notes an event that the client is sent.
    pub fn note(&mut self, method: &str, params: Option<&RawValue>) {
        let Some(params) = params.map(RawValue::get) else { return };
        match method {
            "turn/started" => {
                if let Ok(event) = serde_json::from_str::<TurnEvent>(params)
                    && self.open.as_ref().is_none_or(|open| open.id != event.turn.id)
                {
                    self.open = Some(OpenTurn { id: event.turn.id, ..OpenTurn::default() });
                    self.is_partial = false;
                }
            }
            "turn/completed" => {
                if let Ok(event) = serde_json::from_str::<TurnEvent>(params) {
                    self.open = None;
                    self.ended = Some(event.turn.id);
                    self.is_partial = false;
                }
            }
            "item/started" => {
                if let Ok(event) = serde_json::from_str::<ItemEvent>(params)
                    && let Some(open) = self.turn_of_item(&event.turn_id)
                {
                    open.started.push(event.item);
                }
            }
            "item/completed" => {
                if let Ok(event) = serde_json::from_str::<ItemEvent>(params)
                    && let Some(open) = self.turn_of_item(&event.turn_id)
                {
                    let id = event.item.id();
                    open.started.retain(|item| item.id() != id);
                    open.completed.insert(id.to_owned());
                }
            }
            _ => {}
        }
    }
}
