//! Renders each notification of a turn, in order. Printed text is never changed later, so the output is the same in a
//! terminal, a pipe and a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use loomd_protocol::{
    FunctionCallOutputBody, PatchApplyStatus, ReasoningSummaryTextDeltaNotification, ResponseItem, ServerNotification,
    ThreadItem, ThreadTokenUsage, TurnError, TurnPlanStep, TurnStatus,
};

use super::clean::{Cleaner, lines};
use super::fold::{Fold, Folded, fold};
use super::items::{applied, checklist, more, outcome, output_lines, refused, title, unfinished, whole_change};
use super::live::LiveOutput;
use super::markdown::Markdown;
use super::problem::{plain, problem, retry};
use super::question::QuestionView;
use super::style::{Paint, Style};
use super::wrap::{Wrap, wrap_lines};

/// How a long input is folded.
const INPUT_FOLD: Fold = Fold { first: 8, last: 2 };

pub struct Renderer {
    style: Style,
    /// The last printed block, if it may go on.
    open: OpenBlock,
    printed: bool,
    text: Wrap,
    /// Renders messages, unless they are printed as they are.
    markdown: Option<Markdown>,
    cleaner: Cleaner,
    /// Ids of messages that were printed as deltas.
    streamed: BTreeSet<String>,
    /// File changes in progress, by id.
    changes: BTreeMap<String, ThreadItem>,
    /// The names of tool calls without an item so far, by id.
    calls: BTreeMap<String, String>,
    /// What was printed about file changes, by id.
    change_output: BTreeMap<String, String>,
    /// Running commands, by id.
    commands: BTreeMap<String, LiveOutput>,
    /// The commands that ran at the end of a turn, by id, with the number of lines that were printed or left out.
    left_running: BTreeMap<String, usize>,
    /// Ids of file changes that were printed with an approval question.
    shown: BTreeSet<String>,
    /// The ids of items that have started.
    seen: BTreeSet<String>,
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

/// Tools whose calls have an item, unless they are refused before they begin.
const SHOWN_TOOLS: [&str; 5] = ["apply_patch", "view_image", "exec_command", "shell", "shell_command"];

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
            markdown: None,
            cleaner: Cleaner::default(),
            streamed: BTreeSet::new(),
            changes: BTreeMap::new(),
            calls: BTreeMap::new(),
            change_output: BTreeMap::new(),
            commands: BTreeMap::new(),
            left_running: BTreeMap::new(),
            shown: BTreeSet::new(),
            seen: BTreeSet::new(),
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

    /// Renders messages as Markdown, block by block; see [`pending`](Self::pending).
    pub fn with_markdown(mut self) -> Self {
        self.markdown = Some(Markdown::new(self.style));
        self
    }

    /// Changes the style of what is shown from now on.
    pub fn restyle(&mut self, style: Style) {
        self.style = style;
        self.text.set_limit(style.width());
        self.markdown.iter_mut().for_each(|markdown| markdown.restyle(style));
    }

    /// The end of a message that may still change, as it is so far. It is printed later.
    pub fn pending(&self) -> String {
        self.markdown.as_ref().map(Markdown::pending).unwrap_or_default()
    }

    /// The user's input.
    pub fn input(&mut self, text: &str) -> String {
        let room = self.style.width().map(|width| width.saturating_sub(2));
        let lines: Vec<String> = lines(text).iter().flat_map(|line| wrap_lines(line, room)).collect();
        let mut shown = String::new();
        for (index, folded) in fold(&lines, INPUT_FOLD).enumerate() {
            let mark = if index == 0 { self.style.paint(Paint::Cyan, ">") } else { " ".to_owned() };
            shown += &match folded {
                Folded::Line(line) => format!("{mark} {line}\n"),
                Folded::Hidden(count) => format!("{mark} {}\n", self.style.paint(Paint::Dim, &more(count))),
            };
        }
        self.paragraph(&shown)
    }

    /// Several lines that belong together.
    pub fn block(&mut self, text: &str) -> String {
        self.paragraph(text)
    }

    /// The current activity in a few words, for a status line.
    pub fn status(&self) -> String {
        self.style.cut(&self.status, 2)
    }

    /// Returns the text to print, often empty.
    pub fn show(&mut self, notification: &ServerNotification) -> String {
        let text = self.render(notification);
        text + &self.waiting_output()
    }

    fn render(&mut self, notification: &ServerNotification) -> String {
        use ServerNotification as N;
        match notification {
            N::AgentMessageDelta(delta) => self.append_message(&delta.item_id, &delta.delta),
            N::PlanDelta(delta) => self.append_message(&delta.item_id, &delta.delta),
            N::CommandExecutionOutputDelta(delta) => self.append_output(&delta.item_id, &delta.delta),
            N::FileChangeOutputDelta(delta) => {
                self.change_output.entry(delta.item_id.clone()).or_default().push_str(&delta.delta);
                String::new()
            }
            N::RawResponseItemCompleted(raw) => self.raw_item(&raw.item),
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
            N::Error(error) if error.will_retry => self.retry(&error.error),
            N::Error(error) => {
                self.error = Some(error.error.message.clone());
                self.notice("error", Paint::Red, &problem(&error.error))
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
                let running = self.unfinished_commands();
                let end = match (&completed.turn.status, &completed.turn.error) {
                    (TurnStatus::Interrupted, _) => self.notice("interrupted", Paint::Yellow, ""),
                    (TurnStatus::Failed, Some(error)) if self.error.as_ref() != Some(&error.message) => {
                        self.notice("error", Paint::Red, &problem(error))
                    }
                    _ => self.close(),
                };
                running + &end + &self.tokens()
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
        out += &match &mut self.markdown {
            Some(markdown) => markdown.push(&clean),
            None => self.text.push(&clean),
        };
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

    /// Shows why a call of a tool has no item: it was refused before it began.
    fn raw_item(&mut self, item: &ResponseItem) -> String {
        match item {
            ResponseItem::FunctionCall { name, call_id, .. } | ResponseItem::CustomToolCall { name, call_id, .. }
                if SHOWN_TOOLS.contains(&name.as_str()) && !self.seen.contains(call_id) =>
            {
                self.calls.insert(call_id.clone(), name.clone());
                String::new()
            }
            ResponseItem::FunctionCallOutput { call_id, output, .. } => self.refusal(call_id, output),
            ResponseItem::CustomToolCallOutput { call_id, output, .. } => self.refusal(call_id, output),
            _ => String::new(),
        }
    }

    fn refusal(&mut self, call_id: &str, output: &FunctionCallOutputBody) -> String {
        let (Some(name), FunctionCallOutputBody::Text(reason)) = (self.calls.remove(call_id), output) else {
            return String::new();
        };
        let gap = self.gap(OpenBlock::Closed);
        gap + &refused(self.style, &name, reason)
    }

    fn start(&mut self, item: &ThreadItem) -> String {
        self.calls.remove(id(item));
        self.seen.insert(id(item).to_owned());
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
        if let ThreadItem::CommandExecution { id, .. } = item {
            self.commands.insert(id.clone(), LiveOutput::new(item.clone()));
        }
        self.gap(OpenBlock::Item(id(item).to_owned())) + &title
    }

    /// Output of a command, as it comes. It waits while other text or another command's output is open.
    fn append_output(&mut self, item_id: &str, delta: &str) -> String {
        let Some(live) = self.commands.get_mut(item_id) else { return String::new() };
        live.push(delta);
        self.status = match live.latest() {
            Some(line) => format!("running a command: {}", line.trim()),
            None => "running a command".to_owned(),
        };
        if self.open == OpenBlock::Item(item_id.to_owned()) {
            return output_lines(self.style, &live.take_ready());
        }
        String::new()
    }

    /// Output that came while something else was open, below the repeated title of its command.
    fn waiting_output(&mut self) -> String {
        let mut text = String::new();
        while matches!(self.open, OpenBlock::Nothing | OpenBlock::Closed)
            && let Some(id) = self.commands.iter().find(|(_, live)| live.has_ready()).map(|(id, _)| id.clone())
        {
            let Some((title, ready)) =
                self.commands.get_mut(&id).map(|live| (title(self.style, &live.item), live.take_ready()))
            else {
                break;
            };
            text += &self.gap(OpenBlock::Item(id));
            text += &title.unwrap_or_default();
            text += &output_lines(self.style, &ready);
        }
        text
    }

    /// The commands that run at the end of a turn, with the last of their output.
    fn unfinished_commands(&mut self) -> String {
        let mut text = String::new();
        for (id, live) in std::mem::take(&mut self.commands) {
            let title = title(self.style, &live.item).unwrap_or_default();
            self.left_running.insert(id.clone(), live.total());
            if self.open == OpenBlock::Item(id) {
                self.open = OpenBlock::Closed;
            } else {
                text += &self.gap(OpenBlock::Closed);
                text += &title;
            }
            let (ready, hidden, tail) = live.rest();
            text += &unfinished(self.style, &ready, hidden, &tail);
        }
        text
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
                let reason = self.change_output.remove(id).filter(|_| *status == PatchApplyStatus::Failed);
                let gap = self.gap(OpenBlock::Closed);
                let shown = self.shown.remove(id);
                let change = match shown {
                    true => applied(self.style, *status),
                    false => outcome(self.style, &self.with_relative_paths(item), 0),
                };
                gap + &change + &output_lines(self.style, &lines(reason.as_deref().unwrap_or_default()))
            }
            _ => {
                let Some(title) = title(self.style, item) else { return String::new() };
                self.status = "thinking".to_owned();
                let open = self.open == OpenBlock::Item(id(item).to_owned());
                // Other text was printed since the title, so the title is repeated.
                let head = if open { String::new() } else { self.gap(OpenBlock::Closed) + &title };
                self.open = OpenBlock::Closed;
                let printed = self.commands.remove(id(item)).map(|live| live.printed());
                let printed = printed.or_else(|| self.left_running.remove(id(item))).unwrap_or_default();
                head + &outcome(self.style, item, printed)
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

    /// A failed attempt: which one of how many, and its cause unless that was printed just before.
    fn retry(&mut self, error: &TurnError) -> String {
        self.error = None;
        let word = match retry(&error.message) {
            Some((number, all)) => format!("trying again ({number} of {all})"),
            None => "trying again".to_owned(),
        };
        let cause = error.additional_details.as_ref().unwrap_or(&error.message).clone();
        let text = if self.cause.as_ref() == Some(&cause) { String::new() } else { plain(&cause) };
        self.cause = Some(cause);
        self.notice(&word, Paint::Yellow, &text)
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
        let mut rest = self.text.finish();
        rest += &self.markdown.as_mut().map(Markdown::finish).unwrap_or_default();
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

/// The id of an item of a tool; empty for others.
fn id(item: &ThreadItem) -> &str {
    match item {
        ThreadItem::CommandExecution { id, .. }
        | ThreadItem::McpToolCall { id, .. }
        | ThreadItem::DynamicToolCall { id, .. }
        | ThreadItem::WebSearch { id, .. }
        | ThreadItem::ImageView { id, .. }
        | ThreadItem::CollabAgentToolCall { id, .. }
        | ThreadItem::EnteredReviewMode { id, .. }
        | ThreadItem::FileChange { id, .. }
        | ThreadItem::FunctionCallOutput { id, .. }
        | ThreadItem::SubAgentActivity { id, .. }
        | ThreadItem::ContextCompaction { id } => id,
        _ => "",
    }
}
