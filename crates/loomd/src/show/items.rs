//! Renders items other than messages, each as a few lines: title, output, result.

use loomd_protocol::{
    CommandExecutionStatus, DynamicToolCallOutputContentItem, DynamicToolCallStatus, FileUpdateChange, JsonValue,
    McpToolCallStatus, PatchApplyStatus, PatchChangeKind, ThreadItem, TurnPlanStep, TurnPlanStepStatus,
};

use super::clean::{Cleaner, lines, visible};
use super::fold::{Fold, Folded, fold};
use super::live::OUTPUT;
use super::style::{Paint, Style};

/// How lines beside a rule are folded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    /// A command's output: the shortest.
    Output,
    /// A diff, with more lines than output.
    Diff,
    /// A whole diff, for an approval.
    WholeDiff,
}

impl Block {
    fn fold(self) -> Fold {
        match self {
            Self::Output => OUTPUT,
            Self::Diff => Fold { first: 30, last: 5 },
            Self::WholeDiff => Fold { first: usize::MAX, last: 0 },
        }
    }
}

/// The title of an item, shown while it runs and after; `None` for items without one.
pub fn title(style: Style, item: &ThreadItem) -> Option<String> {
    let (mark, text) = match item {
        ThreadItem::CommandExecution { command, .. } => ("$", shown_command(command)),
        ThreadItem::McpToolCall { server, tool, arguments, .. } => {
            ("⚙", format!("{server}.{tool} {}", shown_arguments(arguments)))
        }
        ThreadItem::DynamicToolCall { tool, arguments, .. } => ("⚙", format!("{tool} {}", shown_arguments(arguments))),
        ThreadItem::WebSearch { query, .. } => ("⌕", query.clone()),
        ThreadItem::ImageView { path, .. } => ("▣", path.clone()),
        ThreadItem::CollabAgentToolCall { tool, prompt, .. } => {
            ("⇢", format!("{} {}", serde_name(tool), prompt.as_deref().unwrap_or_default()))
        }
        ThreadItem::SubAgentActivity { kind, agent_path, .. } => ("⇢", format!("{agent_path} {}", serde_name(kind))),
        ThreadItem::FunctionCallOutput { name, .. } => ("⚙", format!("output of {name}")),
        ThreadItem::EnteredReviewMode { review, .. } => ("◇", format!("review of {review}")),
        ThreadItem::ContextCompaction { .. } => ("≡", "compacting the history".to_owned()),
        _ => return None,
    };
    let text = one_line(&text);
    let line = style.cut(text.trim_end(), 2);
    Some(format!("{} {}\n", style.paint(Paint::Cyan, mark), style.paint(Paint::Bold, &line)))
}

/// The output and the result of an item, below its title. The first `printed` lines of a command's output are left
/// out.
pub fn outcome(style: Style, item: &ThreadItem, printed: usize) -> String {
    match item {
        ThreadItem::CommandExecution { status, aggregated_output, exit_code, duration_ms, .. } => {
            let output = lines(aggregated_output.as_deref().unwrap_or_default());
            let rest = output.get(printed..).unwrap_or_default();
            let by = Fold { first: OUTPUT.first.saturating_sub(printed), ..OUTPUT };
            let output = folded_block(style, rest, Block::Output, by);
            let took = took(*duration_ms);
            let end = match (status, exit_code) {
                (CommandExecutionStatus::Completed, _) => bad_or_good(style, true, &format!("done{took}")),
                (CommandExecutionStatus::Declined, _) => bad_or_good(style, false, "not allowed"),
                (_, Some(code)) => bad_or_good(style, false, &format!("exit {code}{took}")),
                (_, None) => bad_or_good(style, false, &format!("failed{took}")),
            };
            output + &end
        }
        ThreadItem::FileChange { changes, status, .. } => {
            let changes: String = changes.iter().map(|change| change_text(style, change, Block::Diff)).collect();
            match status {
                PatchApplyStatus::Failed | PatchApplyStatus::Declined => changes + &applied(style, *status),
                PatchApplyStatus::Completed | PatchApplyStatus::InProgress => changes,
            }
        }
        ThreadItem::McpToolCall { status, result, error, duration_ms, .. } => {
            let texts = result.iter().flat_map(|result| &result.content).filter_map(|part| part["text"].as_str());
            let text: Vec<String> =
                texts.chain(error.iter().map(|error| error.message.as_str())).flat_map(lines).collect();
            let good = *status == McpToolCallStatus::Completed;
            let word = if good { "done" } else { "failed" };
            block(style, &text, Block::Output) + &bad_or_good(style, good, &format!("{word}{}", took(*duration_ms)))
        }
        ThreadItem::DynamicToolCall { status, content_items, duration_ms, .. } => {
            let texts = content_items.iter().flatten().filter_map(|part| match part {
                DynamicToolCallOutputContentItem::InputText { text } => Some(text.as_str()),
                DynamicToolCallOutputContentItem::InputImage { .. } => None,
            });
            let text: Vec<String> = texts.flat_map(lines).collect();
            let good = *status == DynamicToolCallStatus::Completed;
            let word = if good { "done" } else { "failed" };
            block(style, &text, Block::Output) + &bad_or_good(style, good, &format!("{word}{}", took(*duration_ms)))
        }
        _ => String::new(),
    }
}

/// Lines of a command's output as they come.
pub fn output_lines(style: Style, lines: &[String]) -> String {
    folded_block(style, lines, Block::Output, Fold { first: usize::MAX, last: 0 })
}

/// The last lines of a command that has not ended.
pub fn unfinished(style: Style, ready: &[String], hidden: usize, tail: &[String]) -> String {
    let left_out = match hidden {
        0 => String::new(),
        count => format!("  {} {}\n", style.paint(Paint::Dim, "│"), style.paint(Paint::Dim, &more(count))),
    };
    let state = format!("  {} still running\n", style.paint(Paint::Yellow, "…"));
    output_lines(style, ready) + &left_out + &output_lines(style, tail) + &state
}

/// A tool call that was refused before it began, and why.
pub fn refused(style: Style, tool: &str, reason: &str) -> String {
    let title = format!("{} {}\n", style.paint(Paint::Cyan, "⚙"), style.paint(Paint::Bold, &one_line(tool)));
    title + &block(style, &lines(reason), Block::Output) + &bad_or_good(style, false, "refused")
}

/// The whole diff of a file change.
pub fn whole_change(style: Style, item: &ThreadItem) -> String {
    match item {
        ThreadItem::FileChange { changes, .. } => {
            changes.iter().map(|change| change_text(style, change, Block::WholeDiff)).collect()
        }
        _ => String::new(),
    }
}

/// The result of a change that is already on screen.
pub fn applied(style: Style, status: PatchApplyStatus) -> String {
    match status {
        PatchApplyStatus::Completed => bad_or_good(style, true, "changed"),
        PatchApplyStatus::Declined => bad_or_good(style, false, "not allowed"),
        PatchApplyStatus::Failed | PatchApplyStatus::InProgress => bad_or_good(style, false, "not applied"),
    }
}

/// Stands for lines that were left out.
pub fn more(count: usize) -> String {
    format!("… {count} more lines")
}

/// A unified diff of any number of files, in colour and with long lines cut.
pub fn diff_text(style: Style, diff: &str, fold_at: usize) -> String {
    let lines = lines(diff);
    let mut text = String::new();
    for folded in fold(&lines, Fold { first: fold_at, last: 0 }) {
        let line = match folded {
            Folded::Hidden(count) => style.paint(Paint::Dim, &more(count)),
            Folded::Line(line) => {
                let shown = style.cut(line, 1);
                match line.as_bytes() {
                    [b'd', b'i', b'f', b'f', b' ', ..] => style.paint(Paint::Bold, &shown),
                    [b'+', ..] => style.paint(Paint::Green, &shown),
                    [b'-', ..] => style.paint(Paint::Red, &shown),
                    [b'@', ..] => style.paint(Paint::Cyan, &shown),
                    _ => shown,
                }
            }
        };
        text += &line;
        text.push('\n');
    }
    text
}

/// A plan as a checklist.
pub fn checklist(style: Style, explanation: Option<&str>, plan: &[TurnPlanStep]) -> String {
    let title = one_line(explanation.filter(|text| !text.trim().is_empty()).unwrap_or("Plan"));
    let mut text = format!("{}\n", style.paint(Paint::Bold, &style.cut(title.trim(), 0)));
    for step in plan {
        let (mark, paint) = match step.status {
            TurnPlanStepStatus::Completed => ("✔", Paint::Green),
            TurnPlanStepStatus::InProgress => ("▸", Paint::Cyan),
            TurnPlanStepStatus::Pending => ("☐", Paint::Dim),
        };
        let line = style.cut(one_line(&step.step).trim(), 4);
        text += &format!("  {} {line}\n", style.paint(paint, mark));
    }
    text
}

fn change_text(style: Style, change: &FileUpdateChange, by: Block) -> String {
    let (mark, paint, moved) = match &change.kind {
        PatchChangeKind::Add => ("+", Paint::Green, None),
        PatchChangeKind::Delete => ("-", Paint::Red, None),
        PatchChangeKind::Update { move_path } => ("~", Paint::Yellow, move_path.as_ref()),
    };
    let path = match moved {
        Some(to) => format!("{} → {to}", change.path),
        None => change.path.clone(),
    };
    let whole = by == Block::WholeDiff;
    let mut diff = if whole { visible(&change.diff) } else { lines(&change.diff) };
    match change.kind {
        // The text of an added or deleted file is the whole file.
        PatchChangeKind::Add => diff.iter_mut().for_each(|line| line.insert(0, '+')),
        PatchChangeKind::Delete => diff.iter_mut().for_each(|line| line.insert(0, '-')),
        // The target of a move is in the title, and followed the diff after one or two empty lines.
        PatchChangeKind::Update { .. } => {
            diff.retain(|line| !line.starts_with("Moved to: "));
            diff.truncate(diff.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1));
        }
    }
    let path = if whole { visible(&path).join(" ") } else { style.cut(&one_line(&path), 2) };
    format!("{} {}\n{}", style.paint(paint, mark), style.paint(Paint::Bold, &path), block(style, &diff, by))
}

/// Lines beside a rule, with the middle left out. Lines of a diff are coloured.
fn block(style: Style, lines: &[String], by: Block) -> String {
    folded_block(style, lines, by, by.fold())
}

fn folded_block(style: Style, lines: &[String], by: Block, folding: Fold) -> String {
    let rule = style.paint(Paint::Dim, "│");
    let is_diff = by != Block::Output;
    let mut text = String::new();
    for folded in fold(lines, folding) {
        let line = match folded {
            Folded::Hidden(count) => style.paint(Paint::Dim, &more(count)),
            Folded::Line(line) => {
                let shown = if by == Block::WholeDiff { line.to_owned() } else { style.cut(line, 4) };
                match line.as_bytes().first() {
                    Some(b'+') if is_diff => style.paint(Paint::Green, &shown),
                    Some(b'-') if is_diff => style.paint(Paint::Red, &shown),
                    Some(b'@') if is_diff => style.paint(Paint::Cyan, &shown),
                    _ if is_diff => shown,
                    _ => style.paint(Paint::Dim, &shown),
                }
            }
        };
        text += format!("  {rule} {line}").trim_end();
        text.push('\n');
    }
    text
}

fn bad_or_good(style: Style, good: bool, words: &str) -> String {
    let (mark, paint) = if good { ("✓", Paint::Green) } else { ("✗", Paint::Red) };
    format!("  {} {words}\n", style.paint(paint, mark))
}

/// `, 1.2s`
fn took(duration_ms: Option<i64>) -> String {
    match duration_ms {
        Some(ms @ 0..=99) => format!(", {ms}ms"),
        #[allow(clippy::cast_precision_loss, reason = "durations are far below 2^52 ms")]
        Some(ms) => format!(", {:.1}s", ms as f64 / 1000.0),
        None => String::new(),
    }
}

/// The command without the shell that runs it.
fn shown_command(command: &str) -> String {
    let words = shlex::split(command).unwrap_or_default();
    match words.as_slice() {
        [shell, flag, script] if is_shell(shell) && matches!(flag.as_str(), "-c" | "-lc") => script.clone(),
        _ => command.to_owned(),
    }
}

fn is_shell(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("sh" | "bash" | "zsh"))
}

fn shown_arguments(arguments: &JsonValue) -> String {
    match arguments {
        JsonValue::Null => String::new(),
        JsonValue::Object(members) if members.is_empty() => String::new(),
        other => other.to_string(),
    }
}

/// The wire's name of a value.
fn serde_name(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(JsonValue::String(name)) => name,
        _ => String::new(),
    }
}

fn one_line(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = Cleaner::default().push(lines.next().unwrap_or_default());
    if lines.next().is_some() { format!("{first} …") } else { first }
}
