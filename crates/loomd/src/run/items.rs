//! Items other than messages, each as a few lines: what it is, what came of it, how it ended.

use loomd_protocol::{
    CommandExecutionStatus, DynamicToolCallOutputContentItem, DynamicToolCallStatus, FileUpdateChange, JsonValue,
    McpToolCallStatus, PatchApplyStatus, PatchChangeKind, ThreadItem, TurnPlanStep, TurnPlanStepStatus,
};

use super::clean::{Cleaner, lines};
use super::fold::{Fold, Folded, fold};
use super::style::{Paint, Style};

/// Output is for a glance; the agent has all of it.
const OUTPUT: Fold = Fold { first: 2, last: 4 };
/// A change is worth more lines than a command's output.
const DIFF: Fold = Fold { first: 30, last: 5 };

/// The line that stands over an item while it runs and after; `None` for items that have none.
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
        ThreadItem::EnteredReviewMode { review, .. } => ("◇", format!("review of {review}")),
        ThreadItem::ContextCompaction { .. } => ("≡", "the history is made shorter".to_owned()),
        _ => return None,
    };
    let text = one_line(&text);
    let line = style.cut(text.trim_end(), 2);
    Some(format!("{} {}\n", style.paint(Paint::Cyan, mark), style.paint(Paint::Bold, &line)))
}

/// What came of an item, below its title.
pub fn outcome(style: Style, item: &ThreadItem) -> String {
    match item {
        ThreadItem::CommandExecution { status, aggregated_output, exit_code, duration_ms, .. } => {
            let output = block(style, &lines(aggregated_output.as_deref().unwrap_or_default()), OUTPUT);
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
            let changes: String = changes.iter().map(|change| change_text(style, change)).collect();
            let end = match status {
                PatchApplyStatus::Failed => bad_or_good(style, false, "not applied"),
                PatchApplyStatus::Declined => bad_or_good(style, false, "not allowed"),
                PatchApplyStatus::Completed | PatchApplyStatus::InProgress => String::new(),
            };
            changes + &end
        }
        ThreadItem::McpToolCall { status, result, error, duration_ms, .. } => {
            let texts = result.iter().flat_map(|result| &result.content).filter_map(|part| part["text"].as_str());
            let text: Vec<String> =
                texts.chain(error.iter().map(|error| error.message.as_str())).flat_map(lines).collect();
            let good = *status == McpToolCallStatus::Completed;
            let word = if good { "done" } else { "failed" };
            block(style, &text, OUTPUT) + &bad_or_good(style, good, &format!("{word}{}", took(*duration_ms)))
        }
        ThreadItem::DynamicToolCall { status, content_items, duration_ms, .. } => {
            let texts = content_items.iter().flatten().filter_map(|part| match part {
                DynamicToolCallOutputContentItem::InputText { text } => Some(text.as_str()),
                DynamicToolCallOutputContentItem::InputImage { .. } => None,
            });
            let text: Vec<String> = texts.flat_map(lines).collect();
            let good = *status == DynamicToolCallStatus::Completed;
            let word = if good { "done" } else { "failed" };
            block(style, &text, OUTPUT) + &bad_or_good(style, good, &format!("{word}{}", took(*duration_ms)))
        }
        _ => String::new(),
    }
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

fn change_text(style: Style, change: &FileUpdateChange) -> String {
    let (mark, paint, moved) = match &change.kind {
        PatchChangeKind::Add => ("+", Paint::Green, None),
        PatchChangeKind::Delete => ("-", Paint::Red, None),
        PatchChangeKind::Update { move_path } => ("~", Paint::Yellow, move_path.as_ref()),
    };
    let path = match moved {
        Some(to) => format!("{} → {to}", change.path),
        None => change.path.clone(),
    };
    let mut diff = lines(&change.diff);
    match change.kind {
        // The text of these is the whole file.
        PatchChangeKind::Add => diff.iter_mut().for_each(|line| line.insert(0, '+')),
        PatchChangeKind::Delete => diff.iter_mut().for_each(|line| line.insert(0, '-')),
        // Where it was moved to is in the title, and stood below an empty line or two.
        PatchChangeKind::Update { .. } => {
            diff.retain(|line| !line.starts_with("Moved to: "));
            diff.truncate(diff.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1));
        }
    }
    let path = style.paint(Paint::Bold, &style.cut(&one_line(&path), 2));
    format!("{} {path}\n{}", style.paint(paint, mark), block(style, &diff, DIFF))
}

/// Lines beside a rule, with the middle left out. Lines of a change have their colours.
fn block(style: Style, lines: &[String], by: Fold) -> String {
    let rule = style.paint(Paint::Dim, "│");
    let is_diff = by.first == DIFF.first;
    let mut text = String::new();
    for folded in fold(lines, by) {
        let line = match folded {
            Folded::Hidden(count) => style.paint(Paint::Dim, &format!("… {count} more lines")),
            Folded::Line(line) => {
                let shown = style.cut(line, 4);
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
        #[allow(clippy::cast_precision_loss, reason = "nobody counts that far")]
        Some(ms) => format!(", {:.1}s", ms as f64 / 1000.0),
        None => String::new(),
    }
}

/// The command itself, without the shell that runs it.
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

/// The word that the wire has for a value.
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
