//! Finds the first difference between a recorded and a replayed thread. Not compared are ids, times, and the order of
//! tool calls relative to messages: tools run while the answer streams.

use loomd_model::InputItem;
use loomd_protocol::{JsonValue, ResponseItem, ThreadItem, Turn};
use loomd_store::ThreadId;
use loomd_store::rollout::{Line, whole_lines};
use serde::Serialize;

use crate::conversation::ConversationBuilder;
use crate::markers;
use crate::turns::{Turns, interrupt_open};

/// The characters of each side in a report, and how many of them precede the difference.
const EXCERPT: usize = 240;
const BEFORE: usize = 60;

/// The first difference between a replay and its recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The number of the turn in the rollout, from 1.
    pub turn: usize,
    pub place: String,
    /// An excerpt that begins shortly before the first difference.
    pub recorded: String,
    pub replayed: String,
}

impl Difference {
    pub(super) fn new(turn: usize, place: &str, recorded: &str, replayed: &str) -> Self {
        let same = recorded.chars().zip(replayed.chars()).take_while(|(a, b)| a == b).count();
        let excerpt = |text: &str| {
            let from = same.saturating_sub(BEFORE);
            let mut shown: String = text.chars().skip(from).take(EXCERPT).collect();
            if from > 0 {
                shown.insert(0, '…');
            }
            if text.chars().count() > from + EXCERPT {
                shown.push('…');
            }
            shown
        };
        Self { turn, place: place.into(), recorded: excerpt(recorded), replayed: excerpt(replayed) }
    }
}

/// How a replay is compared with its recording.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// Leaves out context messages: environment, permissions and other sections.
    pub skip_context: bool,
    /// The home of the replay, and the original home that is compared in its place.
    pub home: (String, String),
}

/// Returns the first difference between two rollouts: of the turns that clients see, then of the model's input for the
/// next call. `numbers` returns the number of a recorded turn by its id.
pub fn compare(
    thread: ThreadId,
    recorded: &[u8],
    replayed: &[u8],
    options: &CompareOptions,
    numbers: impl Fn(&str) -> Option<usize>,
) -> Option<Difference> {
    let (before, past) = read(thread, recorded);
    let (after, now) = read(thread, replayed);
    let number = |at: usize| before.get(at).and_then(|turn| numbers(&turn.id)).unwrap_or(at + 1);
    for (at, (before, after)) in before.iter().zip(&after).enumerate() {
        if let Some((place, recorded, replayed)) = options.turns(before, after) {
            return Some(Difference::new(number(at), &place, &recorded, &replayed));
        }
    }
    if before.len() != after.len() {
        let at = before.len().min(after.len());
        let count = |turns: &[Turn]| format!("{} turns", turns.len());
        return Some(Difference::new(number(at), "the turns", &count(&before), &count(&after)));
    }
    let (place, recorded, replayed) = options.inputs(&past, &now)?;
    let last = number(before.len().saturating_sub(1));
    Some(Difference::new(last, &format!("the conversation, {place}"), &recorded, &replayed))
}

fn read(thread: ThreadId, rollout: &[u8]) -> (Vec<Turn>, Vec<InputItem>) {
    let (mut turns, mut conversation) = (Turns::new(thread), ConversationBuilder::default());
    for (_, line) in whole_lines(rollout) {
        turns.push_bytes(line);
        if let Some(line) = Line::parse(line) {
            conversation.line(&line);
        }
    }
    let mut turns = turns.finish();
    interrupt_open(&mut turns);
    (turns, conversation.input(true))
}

impl CompareOptions {
    /// Replaces the home of the replay by the original one.
    fn moved(&self, text: &str) -> String {
        text.replace(&self.home.0, &self.home.1)
    }

    /// The first difference between two turns: its place, and both sides.
    fn turns(&self, before: &Turn, after: &Turn) -> Option<(String, String, String)> {
        let (said, done) = apart(&before.items, str::to_owned);
        let (said_now, done_now) = apart(&after.items, |text| self.moved(text));
        let place =
            |item: &JsonValue, at: usize| format!("item {} ({})", at + 1, item["type"].as_str().unwrap_or_default());
        for (index, (at, item)) in said.iter().enumerate() {
            match said_now.get(index) {
                Some((_, now)) if now == item => {}
                now => return Some((place(item, *at), item.to_string(), text(now))),
            }
        }
        if let Some((at, more)) = said_now.get(said.len()) {
            return Some((place(more, *at), "nothing".into(), more.to_string()));
        }
        for (at, item) in &done {
            match done_now.iter().find(|(_, now)| now["id"] == item["id"]) {
                Some((_, now)) if now == item => {}
                now => return Some((place(item, *at), item.to_string(), text(now))),
            }
        }
        let known = |now: &JsonValue| done.iter().any(|(_, item)| item["id"] == now["id"]);
        if let Some((at, more)) = done_now.iter().find(|(_, now)| !known(now)) {
            return Some((place(more, *at), "nothing".into(), more.to_string()));
        }
        let end = |turn: &Turn| serde_json::json!([turn.status, turn.error]).to_string();
        (end(before) != end(after)).then(|| ("the end".into(), end(before), end(after)))
    }

    /// The first difference between two inputs of the model: its place, and both sides.
    pub(super) fn inputs(&self, before: &[InputItem], after: &[InputItem]) -> Option<(String, String, String)> {
        let counts = |item: &&InputItem| !self.skip_context || !is_context_message(item);
        let before: Vec<&str> = before.iter().filter(counts).map(InputItem::json).collect();
        let after: Vec<&str> = after.iter().filter(counts).map(InputItem::json).collect();
        let same = |at: usize| match (before.get(at), after.get(at)) {
            (Some(before), Some(after)) => before == after || **before == self.moved(after),
            _ => false,
        };
        let at = (0..before.len().max(after.len())).find(|at| !same(*at))?;
        let side = |items: &[&str]| (*items.get(at).unwrap_or(&"nothing")).to_owned();
        Some((format!("item {} of {}", at + 1, before.len()), side(&before), side(&after)))
    }
}

fn text(item: Option<&(usize, JsonValue)>) -> String {
    item.map_or_else(|| "nothing".into(), |(_, item)| item.to_string())
}

/// Items with their indices.
type NumberedItems = Vec<(usize, JsonValue)>;

/// Separates tool calls from other items, each with its index. Only tool calls keep their ids, which come from the
/// model.
fn apart(items: &[ThreadItem], tidy: impl Fn(&str) -> String) -> (NumberedItems, NumberedItems) {
    let json = items.iter().map(|item| {
        let text = serde_json::to_string(item).unwrap_or_default();
        let mut json: JsonValue = serde_json::from_str(&tidy(&text)).unwrap_or_default();
        if !is_call(item)
            && let Some(members) = json.as_object_mut()
        {
            members.shift_remove("id");
        }
        (is_call(item), json)
    });
    let (done, said): (Vec<_>, Vec<_>) = json.enumerate().partition(|(_, (call, _))| *call);
    let placed = |list: Vec<(usize, (bool, JsonValue))>| list.into_iter().map(|(at, (_, json))| (at, json)).collect();
    (placed(said), placed(done))
}

fn is_call(item: &ThreadItem) -> bool {
    use ThreadItem::*;
    matches!(
        item,
        CommandExecution { .. }
            | FileChange { .. }
            | DynamicToolCall { .. }
            | McpToolCall { .. }
            | CollabAgentToolCall { .. }
            | ImageView { .. }
    )
}

/// Whether an item is a message that the agent wrote about the environment, permissions and the like.
fn is_context_message(item: &InputItem) -> bool {
    match item.decode() {
        Some(ResponseItem::Message { role, .. }) if role == "developer" => true,
        Some(ResponseItem::Message { role, content, .. }) => role == "user" && markers::is_context(&content),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_are_excerpts_that_begin_shortly_before_the_difference() {
        let long = "x".repeat(300);
        let difference = Difference::new(1, "here", &format!("{long}é!{long}"), &format!("{long}ä?"));
        let before = "x".repeat(BEFORE);
        let recorded = format!("…{before}é!{}…", "x".repeat(EXCERPT - BEFORE - 2));
        let expected = Difference { turn: 1, place: "here".into(), recorded, replayed: format!("…{before}ä?") };
        assert_eq!(difference, expected);
    }
}
