//! What the model is told of a thread's past: its items, each serialised once, and what it knows of the
//! settings. Rebuilt from the rollout when it is needed and not in memory.

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

/// Stands for the output of a call that never gave one.
const ABORTED: &str = "aborted";

/// The model's view of a thread.
#[derive(Clone, Default)]
pub(crate) struct Conversation {
    entries: Vec<Entry>,
    /// The settings that the model has been told; `None` when it must be told all of them.
    pub baseline: Option<TurnContext>,
    pub usage: Option<TokenUsageInfo>,
    /// The end of the records that this reflects.
    pub end: Position,
}

/// One item, and what has to be known of it without reading it.
#[derive(Clone)]
struct Entry {
    item: InputItem,
    sort: Sort,
    has_image: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Sort {
    /// What the user said, and nothing that was put beside it.
    User,
    /// Said in the user's or developer's name to explain the situation.
    Context,
    /// From the model.
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
    /// Appends an item. Kinds that a model is never told are left out.
    pub fn push(&mut self, item: &ResponseItem) {
        self.entries.extend(Entry::new(item));
    }

    /// Everything is replaced, and the model has to be told the settings again.
    pub fn replace(&mut self, items: &[ResponseItem]) {
        self.entries = items.iter().filter_map(Entry::new).collect();
        self.baseline = None;
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The items as they are sent: every call has its output, every output its call.
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

    /// What the user said, oldest first, each message's texts joined.
    pub fn user_texts(&self) -> Vec<String> {
        let said = self.entries.iter().filter(|entry| entry.sort == Sort::User);
        said.filter_map(|entry| entry.item.decode()).map(|item| text_of(&item)).collect()
    }

    /// About how many bytes the items after the last one of the model are.
    pub fn bytes_since_model(&self) -> usize {
        let after = self.entries.iter().rev();
        let after = after.take_while(|entry| !matches!(entry.sort, Sort::Model | Sort::Call(..)));
        after.map(|entry| entry.item.len()).sum()
    }

    /// About how many bytes all items are.
    pub fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.item.len()).sum()
    }

    /// Takes away the oldest item and what belongs to it; false when nothing is left to take.
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

    /// Replaces the images of the newest tool output by a note, if that is what came last from outside the
    /// model; false when there are none to replace.
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

    /// Reads a thread's conversation from its rollout: from the last summary on, if that is enough.
    pub async fn load(reader: &dyn Reader) -> Result<Self> {
        if let Some(from) = history::last_summary(reader).await?
            && let Some(known) = Self::load_from(reader, from).await?
        {
            return Ok(known);
        }
        Self::load_whole(reader).await
    }

    async fn load_whole(reader: &dyn Reader) -> Result<Self> {
        let mut rebuilt = Rebuilt::default();
        let end = history::each_line(reader, |line| rebuilt.line(line)).await?;
        Ok(rebuilt.finish(end))
    }

    /// From the beginning of a turn on that holds a summary; `None` when that turn was rolled back.
    async fn load_from(reader: &dyn Reader, from: Position) -> Result<Option<Self>> {
        let mut rebuilt = Rebuilt { first_is_summary: true, ..Rebuilt::default() };
        let end = history::each_line_from(reader, from, |line| rebuilt.line(line)).await?;
        if rebuilt.lost {
            return Ok(None);
        }
        if rebuilt.usage.is_none() {
            rebuilt.usage = history::usage_before(reader, from).await?;
        }
        Ok(Some(rebuilt.finish(end)))
    }
}

/// A thread's records on their way to a conversation.
#[derive(Default)]
pub(crate) struct Rebuilt {
    now: State,
    /// Where each turn began.
    turns: Vec<Mark>,
    /// The items before each summary, for turns that are taken back past one.
    before: Vec<Vec<Entry>>,
    usage: Option<TokenUsageInfo>,
    /// Whether a record opened the current turn; else a user message opens the next.
    explicit: bool,
    /// The current turn was opened by a summary, and the next user message belongs to it.
    only_compacted: bool,
    /// Reading began with a turn that holds a summary: what was before it is not known.
    first_is_summary: bool,
    /// That turn was rolled back, and with it everything that is known.
    lost: bool,
}

#[derive(Clone, Default)]
struct State {
    entries: Vec<Entry>,
    /// The last `turn_context`, undecoded.
    baseline: Option<Arc<str>>,
}

struct Mark {
    entries: usize,
    /// How many summaries there were.
    generation: usize,
    baseline: Option<Arc<str>>,
}

impl Rebuilt {
    /// The items so far, as they are sent.
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
        self.turns.push(Mark {
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
            // Old releases kept what the user said and the summary.
            None => {
                let said = self.now.entries.iter().filter(|entry| entry.sort == Sort::User).cloned();
                said.chain(Entry::new(&message("user", compacted.message.clone()))).collect()
            }
        };
        self.before.push(std::mem::replace(&mut self.now.entries, replaced));
        self.now.baseline = None;
    }

    /// The turns that are forgotten are those that are no longer shown: all count, whatever they were for.
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
            ResponseItem::FunctionCallOutput { call_id, output }
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
        CallSort::Function => ResponseItem::FunctionCallOutput { call_id, output },
        CallSort::Custom => ResponseItem::CustomToolCallOutput { call_id, name: None, output },
    }
}

#[cfg(test)]
mod tests;
