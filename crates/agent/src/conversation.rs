//! The conversation of a thread, which is the model's input: its items, each serialised once, and the settings that the
//! model was last sent. Rebuilt from the rollout when it is not in memory.

use std::collections::HashSet;
use std::sync::Arc;

use loomd_model::InputItem;
use loomd_protocol::{ContentItem, FunctionCallOutputBody, FunctionCallOutputContentItem, ResponseItem};
use loomd_store::rollout::{Compacted, Event, Line, Record, TokenUsageInfo, TurnContext};
use loomd_store::{Position, Reader, Result};

use crate::history;
use crate::images;
use crate::markers;
use crate::message::{message, text_of};

/// The output that is sent for a call without one.
const ABORTED: &str = "aborted";

/// The model's input in a thread.
#[derive(Clone, Default)]
pub(crate) struct Conversation {
    entries: Vec<Entry>,
    /// The settings that the model was last sent; `None` when all of them have to be sent.
    pub baseline: Option<TurnContext>,
    pub usage: Option<TokenUsageInfo>,
    /// The end of the records that this reflects.
    pub end: Position,
}

/// One item, with the facts that are needed without decoding it.
#[derive(Clone)]
struct Entry {
    item: InputItem,
    sort: Sort,
    has_image: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Sort {
    /// A message that the user wrote.
    User,
    /// A message with the role of the user or developer that the agent wrote.
    Context,
    /// An item of the model that is not a call.
    Model,
    /// A call that needs an output.
    Call(Box<str>, CallSort),
    Output(Box<str>),
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallSort {
    Function,
    Custom,
}

impl Conversation {
    /// Appends an item, unless it is of a kind that is never sent to a model.
    pub fn push(&mut self, item: &ResponseItem) {
        self.entries.extend(Entry::new(item));
    }

    /// Replaces all items. The model has to be sent all settings again.
    pub fn replace(&mut self, items: &[ResponseItem]) {
        self.entries = items.iter().filter_map(Entry::new).collect();
        self.baseline = None;
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The items as they are sent: a call without output gets [`ABORTED`], an output without call is left out. Without
    /// `images`, a text takes their place.
    pub fn input(&self, images: bool) -> Vec<InputItem> {
        let calls: HashSet<&str> = self.entries.iter().filter_map(Entry::call_id).collect();
        let answered: HashSet<&str> = self.entries.iter().filter_map(Entry::answers).collect();
        let mut input = Vec::with_capacity(self.entries.len() + 1);
        for entry in &self.entries {
            if entry.answers().is_some_and(|id| !calls.contains(id)) {
                continue;
            }
            match entry.has_image && !images {
                true => input.extend(entry.without_images()),
                false => input.push(entry.item.clone()),
            }
            if let Sort::Call(id, sort) = &entry.sort
                && !answered.contains(&**id)
            {
                input.extend(InputItem::new(&output(id, *sort, ABORTED.into())));
            }
        }
        input
    }

    /// The texts of the user's messages, oldest first, those of one message joined.
    pub fn user_texts(&self) -> Vec<String> {
        let said = self.entries.iter().filter(|entry| entry.sort == Sort::User);
        said.filter_map(|entry| entry.item.decode()).map(|item| text_of(&item)).collect()
    }

    /// The approximate size of the items after the model's last one, in bytes.
    pub fn bytes_since_model(&self) -> usize {
        let after = self.entries.iter().rev();
        let after = after.take_while(|entry| !matches!(entry.sort, Sort::Model | Sort::Call(..)));
        after.map(|entry| entry.item.len()).sum()
    }

    /// The approximate size of all items, in bytes.
    pub fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.item.len()).sum()
    }

    /// Removes the oldest item, with its output if it is a call. Returns false when there are no items.
    pub fn drop_oldest(&mut self) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        let oldest = self.entries.remove(0);
        let partner = oldest.call_id().or(oldest.answers()).map(str::to_owned);
        if let Some(id) = partner {
            self.entries.retain(|entry| entry.call_id() != Some(&id) && entry.answers() != Some(&id));
        }
        true
    }

    /// Replaces the images of the newest tool output by a note. Returns false when it has none, or when a message of
    /// the user is newer.
    pub fn drop_last_images(&mut self, note: &str) -> bool {
        let last = self.entries.iter_mut().rev().find(|entry| matches!(entry.sort, Sort::User | Sort::Output(_)));
        let Some(entry) = last.filter(|entry| entry.has_image && matches!(entry.sort, Sort::Output(_))) else {
            return false;
        };
        match entry.item.decode().map(|item| replace_images(item, note)).as_ref().and_then(Entry::new) {
            Some(replaced) => *entry = replaced,
            None => return false,
        }
        true
    }

    /// Reads a thread's conversation from its rollout: from the turn with the last summary on if possible, else all of
    /// it.
    pub async fn load(reader: &dyn Reader) -> Result<Self> {
        if let Some(from) = history::last_summary(reader).await?
            && let Some(known) = Self::load_from(reader, from).await?
        {
            return Ok(known);
        }
        Self::load_whole(reader).await
    }

    async fn load_whole(reader: &dyn Reader) -> Result<Self> {
        let mut builder = ConversationBuilder::default();
        let end = history::each_line(reader, |line| builder.line(line)).await?;
        Ok(builder.finish(end))
    }

    /// Reads from the start of a turn that contains a summary; `None` when that turn was rolled back.
    async fn load_from(reader: &dyn Reader, from: Position) -> Result<Option<Self>> {
        let mut builder = ConversationBuilder { first_is_summary: true, ..ConversationBuilder::default() };
        let end = history::each_line_from(reader, from, |line| builder.line(line)).await?;
        if builder.lost {
            return Ok(None);
        }
        if builder.usage.is_none() {
            builder.usage = history::usage_before(reader, from).await?;
        }
        Ok(Some(builder.finish(end)))
    }
}

/// Builds a conversation from the records of a thread, in order.
#[derive(Default)]
pub(crate) struct ConversationBuilder {
    now: BuiltContents,
    /// The state before each turn.
    turns: Vec<RollbackPoint>,
    /// The items before each summary, for rollbacks of the turn that contains it.
    before: Vec<Vec<Entry>>,
    usage: Option<TokenUsageInfo>,
    /// A record started the current turn. Without one, each user message starts a turn.
    explicit: bool,
    /// The current turn was started by a summary; the next user message belongs to it.
    only_compacted: bool,
    /// Reading began with a turn that contains a summary; the items before it are unknown.
    first_is_summary: bool,
    /// That turn was rolled back, so the result is unusable.
    lost: bool,
}

/// The items and settings after the records read so far.
#[derive(Clone, Default)]
struct BuiltContents {
    entries: Vec<Entry>,
    /// The last `turn_context`, undecoded.
    baseline: Option<Arc<str>>,
}

/// The state before a turn, to which a rollback of the turn returns.
struct RollbackPoint {
    entries: usize,
    /// The number of summaries before the turn.
    generation: usize,
    baseline: Option<Arc<str>>,
}

impl ConversationBuilder {
    /// The items so far, as [`Conversation::input`] returns them.
    pub fn input(&self, images: bool) -> Vec<InputItem> {
        Conversation { entries: self.now.entries.clone(), ..Conversation::default() }.input(images)
    }

    pub fn line(&mut self, line: &Line<'_>) {
        match &*line.kind {
            "turn_context" => self.now.baseline = Some(line.payload.get().into()),
            "response_item" => {
                if let Some(Record::ResponseItem(item)) = line.decode() {
                    self.item(&item);
                }
            }
            "compacted" => {
                if let Some(Record::Compacted(compacted)) = line.decode() {
                    self.compacted(&compacted);
                }
            }
            "event_msg" => match line.payload_type().as_deref() {
                Some("task_started" | "turn_started") => {
                    self.begin();
                    self.explicit = true;
                }
                Some("task_complete" | "turn_complete" | "turn_aborted") => {
                    (self.explicit, self.only_compacted) = (false, false);
                }
                Some("thread_rolled_back" | "token_count") => match line.decode() {
                    Some(Record::EventMsg(Event::ThreadRolledBack(back))) => self.roll_back(back.num_turns),
                    Some(Record::EventMsg(Event::TokenCount(count))) => self.usage = count.info.or(self.usage),
                    _ => {}
                },
                _ => {}
            },
            _ => {}
        }
    }

    fn begin(&mut self) {
        self.turns.push(RollbackPoint {
            entries: self.now.entries.len(),
            generation: self.before.len(),
            baseline: self.now.baseline.clone(),
        });
        self.only_compacted = false;
    }

    fn item(&mut self, item: &ResponseItem) {
        let Some(entry) = Entry::new(item) else { return };
        if entry.sort == Sort::User {
            if !self.explicit && !self.only_compacted {
                self.begin();
            }
            self.only_compacted = false;
        }
        self.now.entries.push(entry);
    }

    fn compacted(&mut self, compacted: &Compacted) {
        if !self.explicit && !self.only_compacted {
            self.begin();
            self.only_compacted = true;
        }
        let replaced = match &compacted.replacement_history {
            Some(items) => items.iter().filter_map(Entry::new).collect(),
            // Older releases kept the user's messages and the summary.
            None => {
                let said = self.now.entries.iter().filter(|entry| entry.sort == Sort::User).cloned();
                said.chain(Entry::new(&message("user", compacted.message.clone()))).collect()
            }
        };
        self.before.push(std::mem::replace(&mut self.now.entries, replaced));
        self.now.baseline = None;
    }

    /// Removes the last turns. Turns are counted as in [`Turns`](crate::turns::Turns), with those without user input.
    fn roll_back(&mut self, turns: u32) {
        let kept = self.turns.len().saturating_sub(turns as usize);
        self.lost |= self.first_is_summary && kept == 0;
        let Some(mark) = self.turns.drain(kept..).next() else { return };
        if mark.generation < self.before.len() {
            self.now.entries = self.before.swap_remove(mark.generation);
            self.before.truncate(mark.generation);
        }
        self.now.entries.truncate(mark.entries);
        self.now.baseline = mark.baseline;
        (self.explicit, self.only_compacted) = (false, false);
    }

    fn finish(self, end: Position) -> Conversation {
        let baseline = self.now.baseline.and_then(|text| serde_json::from_str(&text).ok());
        Conversation { entries: self.now.entries, baseline, usage: self.usage, end }
    }
}

impl Entry {
    fn new(item: &ResponseItem) -> Option<Self> {
        let input = InputItem::new(item)?;
        let (sort, has_image) = match item {
            ResponseItem::Message { role, content, .. } => {
                let image = content.iter().any(|part| matches!(part, ContentItem::InputImage { .. }));
                let sort = match role.as_str() {
                    "system" => return None,
                    "assistant" => Sort::Model,
                    "user" if !markers::is_context(content) => Sort::User,
                    _ => Sort::Context,
                };
                (sort, image)
            }
            ResponseItem::FunctionCall { call_id, .. } => {
                (Sort::Call(call_id.as_str().into(), CallSort::Function), false)
            }
            ResponseItem::LocalShellCall { call_id: Some(call_id), .. } => {
                (Sort::Call(call_id.as_str().into(), CallSort::Function), false)
            }
            ResponseItem::CustomToolCall { call_id, .. } => {
                (Sort::Call(call_id.as_str().into(), CallSort::Custom), false)
            }
            ResponseItem::AgentMessage { .. } => (Sort::Context, false),
            // The client ran the tool by itself, without a call.
            ResponseItem::FunctionCallOutput { call_id, .. } if call_id.is_empty() => (Sort::Context, false),
            ResponseItem::FunctionCallOutput { call_id, output, .. }
            | ResponseItem::CustomToolCallOutput { call_id, output, .. } => {
                let image = matches!(output, FunctionCallOutputBody::Items(items)
                    if items.iter().any(|item| matches!(item, FunctionCallOutputContentItem::InputImage { .. })));
                (Sort::Output(call_id.as_str().into()), image)
            }
            ResponseItem::Reasoning { .. }
            | ResponseItem::WebSearchCall { .. }
            | ResponseItem::ImageGenerationCall { .. } => (Sort::Model, false),
            _ => (Sort::Other, false),
        };
        Some(Self { item: input, sort, has_image })
    }

    fn call_id(&self) -> Option<&str> {
        match &self.sort {
            Sort::Call(id, _) => Some(id),
            _ => None,
        }
    }

    fn answers(&self) -> Option<&str> {
        match &self.sort {
            Sort::Output(id) => Some(id),
            _ => None,
        }
    }

    fn without_images(&self) -> Option<InputItem> {
        InputItem::new(&replace_images(self.item.decode()?, images::OMITTED))
    }
}

fn replace_images(mut item: ResponseItem, note: &str) -> ResponseItem {
    match &mut item {
        ResponseItem::Message { content, .. } => {
            for part in content {
                if let ContentItem::InputImage { .. } = part {
                    *part = ContentItem::InputText { text: note.into() };
                }
            }
        }
        ResponseItem::FunctionCallOutput { output: FunctionCallOutputBody::Items(items), .. }
        | ResponseItem::CustomToolCallOutput { output: FunctionCallOutputBody::Items(items), .. } => {
            for part in items {
                if let FunctionCallOutputContentItem::InputImage { .. } = part {
                    *part = FunctionCallOutputContentItem::InputText { text: note.into() };
                }
            }
        }
        _ => {}
    }
    item
}

fn output(call_id: &str, sort: CallSort, output: String) -> ResponseItem {
    let (call_id, output) = (call_id.to_owned(), FunctionCallOutputBody::Text(output));
    match sort {
        CallSort::Function => ResponseItem::FunctionCallOutput { call_id, name: None, namespace: None, output },
        CallSort::Custom => ResponseItem::CustomToolCallOutput { call_id, name: None, output },
    }
}

#[cfg(test)]
mod tests;
