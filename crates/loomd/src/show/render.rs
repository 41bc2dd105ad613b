//! Renders each notification of a turn, in order. Printed text is never changed later, so the output is the same in a
//! terminal, a pipe and a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use loomd_protocol::{
    ReasoningSummaryTextDeltaNotification, ServerNotification, ThreadItem, ThreadTokenUsage, TurnError, TurnPlanStep,
    TurnStatus,
};

use super::clean::Cleaner;
use super::items::{applied, checklist, outcome, title, whole_change};
use super::question::QuestionView;
use super::style::{Paint, Style};
use super::wrap::Wrap;

pub struct Renderer {
    style: Style,
    /// The last printed block, if it may go on.
    open: OpenBlock,
    printed: bool,
    text: Wrap,
    cleaner: Cleaner,
    /// Ids of messages that were printed as deltas.
    streamed: BTreeSet<String>,
    /// File changes in progress, by id.
    changes: BTreeMap<String, ThreadItem>,
    /// Ids of file changes that were printed with an approval question.
    shown: BTreeSet<String>,
    plan: Vec<TurnPlanStep>,
    usage: Option<ThreadTokenUsage>,
    /// The text of a review, which some servers repeat as a message.
    review: Option<String>,
    /// The last printed error.
    error: Option<String>,
    /// The cause of the last failed attempt.
    cause: Option<String>,
    /// The working directory; files below it are shown by their relative paths.
    folder: Option<PathBuf>,
    status: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OpenBlock {
    Nothing,
    Message(String),
    Thought(String, i64),
    /// A title without its result so far.
    Item(String),
    /// An item with its result. Other items follow without an empty line.
    Closed,
}

impl Renderer {
    pub fn new(style: Style) -> Self {
        Self {
            style,
            open: OpenBlock::Nothing,
            printed: false,
            text: Wrap::new(style.width()),
            cleaner: Cleaner::default(),
            streamed: BTreeSet::new(),
            changes: BTreeMap::new(),
            shown: BTreeSet::new(),
            plan: Vec::new(),
            usage: None,
            review: None,
            error: None,
            cause: None,
            folder: None,
            status: "starting".to_owned(),
        }
    }

    /// Shows files below this folder by their relative paths.
    pub fn in_folder(mut self, folder: &str) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Changes the style of what is shown from now on.
    pub fn restyle(&mut self, style: Style) {
        self.style = style;
        self.text.set_limit(style.width());
    }

    /// The current activity in a few words, for a status line.
    pub fn status(&self) -> String {
        self.style.cut(&self.status, 2)
    }

    /// Returns the text to print, often empty.
    pub fn show(&mut self, notification: &ServerNotification) -> String {
        use ServerNotification as N;
        match notification {
            N::AgentMessageDelta(delta) => self.append_message(&delta.item_id, &delta.delta),
            N::PlanDelta(delta) => self.append_message(&delta.item_id, &delta.delta),
            N::ReasoningSummaryTextDelta(delta) => self.append_reasoning(delta),
            N::ItemStarted(started) => self.start(&started.item),
            N::ItemCompleted(completed) => self.complete(&completed.item),
            N::TurnPlanUpdated(updated) if updated.plan != self.plan => {
                self.plan.clone_from(&updated.plan);
                let text = checklist(self.style, updated.explanation.as_deref(), &updated.plan);
                self.paragraph(&text)
            }
            N::ThreadTokenUsageUpdated(updated) => {
                self.usage = Some(updated.token_usage.clone());
                String::new()
            }
            N::Error(error) => {
                self.error = (!error.will_retry).then(|| error.error.message.clone());
                let (word, paint) =
                    if error.will_retry { ("trying again", Paint::Yellow) } else { ("error", Paint::Red) };
                let text = self.with_cause(&error.error);
                self.notice(word, paint, &text)
            }
            N::ConfigWarning(warning) => self.notice("warning", Paint::Yellow, &warning.summary),
            N::DeprecationNotice(notice) => self.notice("deprecated", Paint::Yellow, &notice.summary),
            N::ModelRerouted(rerouted) => {
                let text = format!("{} is used in place of {}", rerouted.to_model, rerouted.from_model);
                self.notice("model", Paint::Yellow, &text)
            }
            N::TurnStarted(_) => {
                self.status = "thinking".to_owned();
                String::new()
            }
            N::TurnCompleted(completed) => {
                let end = match (&completed.turn.status, &completed.turn.error) {
                    (TurnStatus::Interrupted, _) => self.notice("interrupted", Paint::Yellow, ""),
                    (TurnStatus::Failed, Some(error)) if self.error.as_ref() != Some(&error.message) => {
                        let text = self.with_cause(error);
                        self.notice("error", Paint::Red, &text)
                    }
                    _ => self.close(),
                };
                end + &self.tokens()
            }
            _ => String::new(),
        }
    }

    /// A coloured word and a message.
    pub fn warn(&mut self, word: &str, text: &str) -> String {
        self.notice(word, Paint::Yellow, text)
    }

    /// A dimmed line.
    pub fn remark(&mut self, text: &str) -> String {
        let gap = self.gap(OpenBlock::Closed);
        gap + &self.dim(text)
    }

    /// A question, and the change to approve. Ends where the answer is typed.
    pub fn question(&mut self, question: &QuestionView<'_>) -> String {
        let mut out = self.gap(OpenBlock::Nothing);
        if let Some(change) = question.item_id.and_then(|id| self.changes.get(id)) {
            out += &whole_change(self.style, change);
            out.push('\n');
            self.shown.extend(question.item_id.map(str::to_owned));
        }
        out + &question.text(self.style)
    }

    /// Text of a message, as it streams.
    fn append_message(&mut self, item_id: &str, text: &str) -> String {
        let open = OpenBlock::Message(item_id.to_owned());
        let mut out = if self.open == open { String::new() } else { self.gap(open) };
        self.status = "writing".to_owned();
        self.streamed.insert(item_id.to_owned());
        let clean = self.cleaner.push(text);
        out += &self.text.push(&clean);
        out
    }

    fn append_reasoning(&mut self, delta: &ReasoningSummaryTextDeltaNotification) -> String {
        let open = OpenBlock::Thought(delta.item_id.clone(), delta.summary_index);
        let mut out = if self.open == open { String::new() } else { self.gap(open) };
        self.status = "thinking".to_owned();
        let clean = self.cleaner.push(&delta.delta);
        let text = self.text.push(&clean);
        out += &self.style.paint(Paint::Dim, &text);
        out
    }

    fn start(&mut self, item: &ThreadItem) -> String {
        let Some(title) = title(self.style, item) else {
            self.status = "thinking".to_owned();
            if let ThreadItem::FileChange { id, .. } = item {
                self.status = "changing files".to_owned();
                self.changes.insert(id.clone(), self.with_relative_paths(item));
            }
            return String::new();
        };
        self.status = match item {
            ThreadItem::CommandExecution { .. } => "running a command".to_owned(),
            ThreadItem::WebSearch { .. } => "searching".to_owned(),
            _ => "using a tool".to_owned(),
        };
        self.gap(OpenBlock::Item(id(item).to_owned())) + &title
    }

    fn complete(&mut self, item: &ThreadItem) -> String {
        match item {
            ThreadItem::AgentMessage { text, .. } if self.review.as_ref() == Some(text) => String::new(),
            ThreadItem::AgentMessage { id, text, .. } | ThreadItem::Plan { id, text } => {
                let said = if self.streamed.contains(id) { String::new() } else { self.append_message(id, text) };
                if self.open == OpenBlock::Message(id.clone()) { said + &self.close() } else { said }
            }
            ThreadItem::ExitedReviewMode { id, review } => {
                self.review = Some(review.clone());
                self.append_message(id, review) + &self.close()
            }
            ThreadItem::Reasoning { id, .. } => match &self.open {
                OpenBlock::Thought(open, _) if open == id => self.close(),
                _ => String::new(),
            },
            ThreadItem::FileChange { id, status, .. } => {
                self.status = "thinking".to_owned();
                self.changes.remove(id);
                let gap = self.gap(OpenBlock::Closed);
                let shown = self.shown.remove(id);
                gap + &if shown {
                    applied(self.style, *status)
                } else {
                    outcome(self.style, &self.with_relative_paths(item))
                }
            }
            _ => {
                let Some(title) = title(self.style, item) else { return String::new() };
                self.status = "thinking".to_owned();
                let open = self.open == OpenBlock::Item(id(item).to_owned());
                // Other text was printed since the title, so the title is repeated.
                let head = if open { String::new() } else { self.gap(OpenBlock::Closed) + &title };
                self.open = OpenBlock::Closed;
                head + &outcome(self.style, item)
            }
        }
    }

    /// A block with empty lines around it.
    fn paragraph(&mut self, text: &str) -> String {
        let gap = self.gap(OpenBlock::Nothing);
        gap + text
    }

    fn notice(&mut self, word: &str, paint: Paint, text: &str) -> String {
        let gap = self.gap(OpenBlock::Closed);
        let clean = Cleaner::default().push(text.trim());
        let line = if clean.is_empty() { word.to_owned() } else { format!("{word}: {clean}") };
        // The word is at the beginning of the line.
        gap + &self.wrapped(&line).replacen(word, &self.style.paint(paint, word), 1)
    }

    /// The message of an error with its cause, unless the cause was printed just before.
    fn with_cause(&mut self, error: &TurnError) -> String {
        let before = std::mem::replace(&mut self.cause, error.additional_details.clone());
        match &self.cause {
            Some(cause) if before.as_ref() != Some(cause) && !error.message.contains(cause.as_str()) => {
                format!("{} ({cause})", error.message)
            }
            _ => error.message.clone(),
        }
    }

    /// A change with relative paths.
    fn with_relative_paths(&self, item: &ThreadItem) -> ThreadItem {
        let mut item = item.clone();
        if let (ThreadItem::FileChange { changes, .. }, Some(folder)) = (&mut item, &self.folder) {
            for change in changes {
                if let Some(below) = Path::new(&change.path).strip_prefix(folder).ok().and_then(Path::to_str) {
                    change.path = below.to_owned();
                }
            }
        }
        item
    }

    /// Wrapped between words at the width of the terminal.
    fn wrapped(&self, text: &str) -> String {
        let mut wrap = Wrap::new(self.style.width());
        wrap.push(text) + &wrap.finish()
    }

    fn dim(&self, text: &str) -> String {
        self.style.paint(Paint::Dim, self.wrapped(text).trim_end_matches('\n')) + "\n"
    }

    /// Ends the open block and adds an empty line, except between items.
    fn gap(&mut self, next: OpenBlock) -> String {
        let is_item = |open: &OpenBlock| matches!(open, OpenBlock::Item(_) | OpenBlock::Closed);
        let free = self.printed && !(is_item(&self.open) && is_item(&next));
        let mut out = self.close();
        if free {
            out.push('\n');
        }
        self.open = next;
        self.printed = true;
        out
    }

    /// Ends an incomplete line.
    fn close(&mut self) -> String {
        let rest = self.text.finish();
        self.cleaner = Cleaner::default();
        match std::mem::replace(&mut self.open, OpenBlock::Nothing) {
            OpenBlock::Thought(..) => match rest.strip_suffix('\n') {
                Some(rest) => self.style.paint(Paint::Dim, rest) + "\n",
                None => rest,
            },
            _ => rest,
        }
    }

    fn tokens(&mut self) -> String {
        let Some(usage) = self.usage.take() else { return String::new() };
        let total = &usage.total;
        let mut text = format!("tokens: {} in", grouped(total.input_tokens));
        if total.cached_input_tokens > 0 {
            text += &format!(" ({} cached)", grouped(total.cached_input_tokens));
        }
        text += &format!(", {} out", grouped(total.output_tokens));
        if total.reasoning_output_tokens > 0 {
            text += &format!(" ({} thinking)", grouped(total.reasoning_output_tokens));
        }
        if let Some(window @ 1..) = usage.model_context_window {
            text += &format!("; {}% of the window", usage.last.total_tokens.saturating_mul(100) / window);
        }
        let gap = self.gap(OpenBlock::Closed);
        gap + &self.dim(&text)
    }
}

/// `12,345`
fn grouped(number: i64) -> String {
    let digits = number.max(0).to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// The id of an item that has a title.
fn id(item: &ThreadItem) -> &str {
    match item {
        ThreadItem::CommandExecution { id, .. }
        | ThreadItem::McpToolCall { id, .. }
        | ThreadItem::DynamicToolCall { id, .. }
        | ThreadItem::WebSearch { id, .. }
        | ThreadItem::ImageView { id, .. }
        | ThreadItem::CollabAgentToolCall { id, .. }
        | ThreadItem::EnteredReviewMode { id, .. }
        | ThreadItem::ContextCompaction { id } => id,
        _ => "",
    }
}
