//! A thread as a Markdown document.

use loomd_protocol::{PatchChangeKind, Thread, ThreadItem, Turn, UserInput};

pub fn markdown(thread: &Thread) -> String {
    let title = thread.name.as_deref().or(thread.preview.lines().next()).unwrap_or_default().trim();
    let title = if title.is_empty() { &thread.id } else { title };
    let mut text = format!("# {title}\n\nThread `{}` in `{}`\n", thread.id, thread.cwd);
    for turn in &thread.turns {
        text += &turn_text(turn);
    }
    text
}

fn turn_text(turn: &Turn) -> String {
    let mut text: String = turn.items.iter().map(item_text).filter(|item| !item.is_empty()).collect();
    if let Some(error) = &turn.error {
        text += &format!("\n**Error:** {}\n", error.message);
    }
    text
}

fn item_text(item: &ThreadItem) -> String {
    match item {
        ThreadItem::UserMessage { content, .. } => format!("\n## User\n\n{}\n", user_text(content)),
        ThreadItem::AgentMessage { text, .. } | ThreadItem::Plan { text, .. } => {
            format!("\n## Agent\n\n{}\n", text.trim_end())
        }
        ThreadItem::ExitedReviewMode { review, .. } => format!("\n## Review\n\n{}\n", review.trim_end()),
        ThreadItem::Reasoning { summary, .. } if !summary.is_empty() => {
            let quoted = summary.join("\n\n").lines().map(|line| format!("> {line}\n")).collect::<String>();
            format!("\n{quoted}")
        }
        ThreadItem::CommandExecution { command, aggregated_output, exit_code, .. } => {
            let output = aggregated_output.as_deref().unwrap_or_default();
            let code = exit_code.filter(|code| *code != 0).map(|code| format!("(exit {code})\n")).unwrap_or_default();
            fenced("console", &format!("$ {command}\n{output}{}{code}", line_end(output)))
        }
        ThreadItem::FileChange { changes, .. } => changes
            .iter()
            .map(|change| {
                let word = match change.kind {
                    PatchChangeKind::Add => "Added",
                    PatchChangeKind::Delete => "Deleted",
                    PatchChangeKind::Update { .. } => "Changed",
                };
                format!("\n{word} `{}`:\n{}", change.path, fenced("diff", &change.diff))
            })
            .collect(),
        ThreadItem::McpToolCall { server, tool, arguments, .. } => {
            format!("\nCalled `{server}.{tool}`:\n{}", fenced("json", &arguments.to_string()))
        }
        ThreadItem::DynamicToolCall { tool, arguments, .. } => {
            format!("\nCalled `{tool}`:\n{}", fenced("json", &arguments.to_string()))
        }
        ThreadItem::WebSearch { query, .. } => format!("\nSearched the web for “{query}”.\n"),
        _ => String::new(),
    }
}

fn user_text(content: &[UserInput]) -> String {
    let part = |input: &UserInput| match input {
        UserInput::Text { text, .. } => text.trim_end().to_owned(),
        UserInput::Image { .. } => "*(an image)*".to_owned(),
        UserInput::Audio { .. } => "*(a sound)*".to_owned(),
        UserInput::LocalImage { path } | UserInput::LocalAudio { path } => format!("*({path})*"),
        UserInput::Skill { name, .. } | UserInput::Mention { name, .. } => format!("*({name})*"),
    };
    content.iter().map(part).collect::<Vec<_>>().join("\n\n")
}

/// A code block with a fence longer than any in it.
fn fenced(kind: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("\n{fence}{kind}\n{text}{}{fence}\n", line_end(text))
}

fn line_end(text: &str) -> &'static str {
    if text.is_empty() || text.ends_with('\n') { "" } else { "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_longer_than_those_inside() {
        for (text, block) in [
            ("a", "\n```x\na\n```\n"),
            ("a\n", "\n```x\na\n```\n"),
            ("", "\n```x\n```\n"),
            ("```\na\n```", "\n````x\n```\na\n```\n````\n"),
        ] {
            assert_eq!(fenced("x", text), block, "{text:?}");
        }
    }
}
