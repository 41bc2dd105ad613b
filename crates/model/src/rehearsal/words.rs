//! Parses prompts into steps. A prompt is split into clauses: at line ends, at ends of sentences, at `;` and at "then",
//! but never inside of quotes, backticks or fenced blocks. A clause that begins with a verb of the table is a step; any
//! other clause continues the text before it, or is ignored.

use std::time::Duration;

use loomd_protocol::{JsonValue, MessagePhase, RateLimitWindow, ResponseItem, ResponsesApiWebSearchAction};
use serde_json::json;

use super::clauses::{Clause, clauses};
use super::failures;
use super::step::{Step, ToolAction, tokens};
use super::texts;
use crate::{ModelEvent, event_json};

/// The limit on the steps of a prompt.
const MAX_STEPS: usize = 1000;
/// The limit of "repeat".
const MAX_REPEATS: usize = 100;
/// The limit of one "wait".
const MAX_WAIT: Duration = Duration::from_secs(600);
/// The delay between fragments after "slowly".
const SLOW: Duration = Duration::from_millis(50);

/// A PNG image of one pixel.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Returns the steps of a prompt; none if it contains no command.
pub(crate) fn parse(prompt: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for clause in clauses(prompt) {
        if steps.len() >= MAX_STEPS {
            break;
        }
        match read(&clause) {
            Some(read) => {
                if clause.also && steps.last().is_some_and(|step| matches!(step, Step::Call(_))) {
                    steps.push(Step::Also);
                }
                steps.extend(read);
            }
            None => continue_text(&mut steps, &clause),
        }
    }
    steps.truncate(MAX_STEPS);
    steps
}

/// Appends a clause that is no step to the text of the step before it.
fn continue_text(steps: &mut [Step], clause: &Clause) {
    if let Some(Step::Say { text, .. } | Step::Think(text) | Step::Reason(text)) = steps.last_mut() {
        text.push_str(&clause.before);
        text.push_str(&clause.text);
    }
}

type Verb = fn(&Clause, &str) -> Option<Vec<Step>>;

/// Matched against the start of a clause; the first match counts.
const VERBS: &[(&str, Verb)] = &[
    ("run", |clause, rest| Some(vec![run(clause, rest)])),
    ("execute", |clause, rest| Some(vec![run(clause, rest)])),
    ("write stdin", |clause, rest| Some(vec![Step::Call(ToolAction::Type(clause.argument(rest)))])),
    ("type", |clause, rest| Some(vec![Step::Call(ToolAction::Type(format!("{}\n", clause.argument(rest))))])),
    ("write", write),
    ("create", write),
    ("apply patch", |clause, rest| Some(vec![patch(&clause.argument(rest))])),
    ("patch", |clause, rest| Some(vec![patch(&clause.argument(rest))])),
    ("replace", replace),
    ("delete", |clause, rest| Some(vec![edit(&format!("*** Delete File: {}", path(clause, rest)))])),
    ("move", rename),
    ("rename", rename),
    ("read", |clause, rest| Some(vec![shell(&format!("cat {}", quoted(&path(clause, rest))))])),
    ("list", |clause, rest| Some(vec![shell(format!("ls {}", path(clause, rest)).trim_end())])),
    ("grep", |clause, rest| Some(vec![shell(&format!("grep -rn {} .", quoted(&clause.argument(rest))))])),
    ("look at", |clause, rest| Some(vec![Step::call("view_image", json!({ "path": path(clause, rest) }))])),
    ("view", |clause, rest| Some(vec![Step::call("view_image", json!({ "path": path(clause, rest) }))])),
    ("ask", ask),
    ("propose plan", |clause, rest| Some(vec![Step::say(texts::proposed_plan(&clause.argument(rest)))])),
    ("propose", |clause, rest| Some(vec![Step::say(texts::proposed_plan(&clause.argument(rest)))])),
    ("plan", plan),
    ("think", |clause, rest| Some(vec![Step::Think(clause.argument(after(rest, &["about"])))])),
    ("reason", |clause, rest| Some(vec![Step::Reason(clause.argument(after(rest, &["about"])))])),
    ("say slowly", |clause, rest| Some(vec![Step::Pace(SLOW), Step::say(clause.argument(rest))])),
    ("say", |clause, rest| Some(vec![Step::say(clause.argument(rest))])),
    ("answer", |clause, rest| Some(vec![Step::say(clause.argument(rest))])),
    ("reply", |clause, rest| Some(vec![Step::say(clause.argument(rest))])),
    ("comment", |clause, rest| {
        Some(vec![Step::Say { text: clause.argument(rest), phase: Some(MessagePhase::Commentary) }])
    }),
    ("search", search),
    ("open page", |clause, rest| {
        Some(vec![web(ResponsesApiWebSearchAction::OpenPage { url: Some(clause.argument(rest)) })])
    }),
    ("draw", |clause, rest| Some(vec![draw(&clause.argument(rest))])),
    ("spawn", spawn),
    ("send agent", |clause, rest| Some(vec![Step::Call(ToolAction::SendAgent(clause.argument(rest)))])),
    ("wait for agents", |_, _| Some(vec![Step::Call(ToolAction::WaitAgents)])),
    ("wait for agent", |_, _| Some(vec![Step::Call(ToolAction::WaitAgents)])),
    ("wait for the agent", |_, _| Some(vec![Step::Call(ToolAction::WaitAgents)])),
    ("close agent", |_, _| Some(vec![Step::Call(ToolAction::CloseAgent)])),
    ("close the agent", |_, _| Some(vec![Step::Call(ToolAction::CloseAgent)])),
    ("call custom", custom),
    ("call", call),
    ("item", |clause, rest| {
        let item = serde_json::from_str(&clause.argument(rest)).ok()?;
        Some(vec![Step::Item(Box::new(item))])
    }),
    ("event", |clause, rest| {
        let line: JsonValue = serde_json::from_str(&clause.argument(rest)).ok()?;
        Some(vec![Step::Event(Box::new(event_json::read(&line)?))])
    }),
    ("fail", fail),
    ("slowly", |_, _| Some(vec![Step::Pace(SLOW)])),
    ("stream slowly", |_, _| Some(vec![Step::Pace(SLOW)])),
    ("quickly", |_, _| Some(vec![Step::Pace(Duration::ZERO)])),
    ("wait", |_, rest| Some(vec![Step::Wait(duration(rest)?)])),
    ("pause", |_, rest| Some(vec![Step::Wait(duration(rest)?)])),
    ("repeat", repeat),
    ("use", usage),
    ("pretend to be", |clause, rest| {
        Some(vec![Step::Event(Box::new(Ok(ModelEvent::ServerModel(clause.argument(rest)))))])
    }),
    ("limit", limit),
    ("play", play),
    ("demo", |_, _| Some(parse(texts::DEMO))),
    ("help", |_, _| Some(vec![Step::say(texts::HELP)])),
];

/// Whether a step can begin with this word.
#[cfg(test)]
pub(super) fn is_verb(word: &str) -> bool {
    VERBS.iter().any(|(verb, _)| verb.split(' ').next() == Some(word))
}

fn read(clause: &Clause) -> Option<Vec<Step>> {
    let lower = clause.text.to_ascii_lowercase();
    let fits = |words: &str| {
        let rest = lower.strip_prefix(words);
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
    };
    let (words, verb) = VERBS.iter().find(|(words, _)| fits(words))?;
    let rest = clause.text[words.len()..].trim_start_matches([':', ' ', '\t']);
    verb(clause, rest)
}

fn run(clause: &Clause, rest: &str) -> Step {
    let lower = clause.outside(rest).to_ascii_lowercase();
    let background = lower.ends_with("in the background");
    let escalated = lower.ends_with("without the sandbox") || lower.ends_with("with escalation");
    let cut = ["in the background", "without the sandbox", "with escalation"];
    let command = clause.word(before(rest, &cut));
    Step::Call(ToolAction::Run { command, background, escalated })
}

fn shell(command: &str) -> Step {
    Step::Call(ToolAction::Run { command: command.into(), background: false, escalated: false })
}

fn write(clause: &Clause, rest: &str) -> Option<Vec<Step>> {
    let rest = after(rest, &["a file called", "the file", "a file", "file"]);
    let (path, content) = clause.pair(rest, &[" with ", " saying ", ": ", ":"])?;
    let mut lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
    if lines.is_empty() {
        lines = "+\n".into();
    }
    Some(vec![edit(&format!("*** Add File: {path}\n{}", lines.trim_end_matches('\n')))])
}

fn replace(clause: &Clause, rest: &str) -> Option<Vec<Step>> {
    let (old, rest) = clause.split(rest, " with ")?;
    let (new, path) = clause.split(rest, " in ")?;
    let (old, new, path) = (clause.argument(old), clause.argument(new), clause.word(path));
    let lines = |mark: char, text: &str| text.lines().map(|line| format!("{mark}{line}\n")).collect::<String>();
    let body = format!("*** Update File: {path}\n@@\n{}{}", lines('-', &old), lines('+', &new));
    Some(vec![edit(body.trim_end_matches('\n'))])
}

fn rename(clause: &Clause, rest: &str) -> Option<Vec<Step>> {
    let (from, to) = clause.split(after(rest, &["the file", "file"]), " to ")?;
    let (from, to) = (quoted(&clause.word(from)), quoted(&clause.word(to)));
    Some(vec![shell(&format!("mv {from} {to}"))])
}

fn edit(body: &str) -> Step {
    patch(&format!("*** Begin Patch\n{body}\n*** End Patch"))
}

fn patch(text: &str) -> Step {
    Step::Call(ToolAction::Patch(text.into()))
}

fn path(clause: &Clause, rest: &str) -> String {
    clause.word(after(rest, &["the image", "the file", "image", "file", "the folder", "folder"]))
}

fn ask(clause: &Clause, rest: &str) -> Option<Vec<Step>> {
    let rest = after(rest, &["me", "the user"]);
    let (question, options) = clause.split(rest, " with options ").unwrap_or((rest, "yes, no"));
    let options: Vec<_> = list(&clause.argument(options))
        .into_iter()
        .map(|label| json!({ "description": format!("The answer is {label}."), "label": label }))
        .collect();
    let question =
        json!({ "id": "answer", "header": "Question", "question": clause.argument(question), "options": options });
    Some(vec![Step::call("request_user_input", json!({ "questions": [question] }))])
}

fn plan(clause: &Clause, rest: &str) -> Option<Vec<Step>> {
    let text = clause.argument(rest);
    let steps = list(&text);
    if steps.is_empty() {
        return None;
    }
    // The first step of a plan is in progress.
    let status = |index: usize| if index == 0 { "in_progress" } else { "pending" };
    let steps: Vec<_> =
        steps.iter().enumerate().map(|(index, step)| json!({ "step": step, "status": status(index) })).collect();
    Some(vec![Step::call("update_plan", json!({ "plan": steps }))])
}

fn search(clause: &Clause, rest: &str) -> Option<Vec<Step>> {
    let query = clause.argument(after(rest, &["the web for", "the web", "for"]));
    Some(vec![web(ResponsesApiWebSearchAction::Search { queries: None, query: Some(query) })])
}

fn web(action: ResponsesApiWebSearchAction) -> Step {
    let status = Some("completed".into());
    Step::Item(Box::new(ResponseItem::WebSearchCall { status, action: Some(action), id: None }))
}

fn draw(prompt: &str) -> Step {
    Step::Item(Box::new(ResponseItem::ImageGenerationCall {
        id: String::new(),
        status: "completed".into(),
        revised_prompt: Some(prompt.into()),
        result: PICTURE.into(),
    }))
}

fn spawn(clause: &Clause, rest: &str) -> Option<Vec<Step>> {
    let rest = after(rest, &["an agent", "agent", "a helper"]);
    let message = clause.argument(after(rest, &["to", "with", ":"]));
    Some(vec![Step::call("spawn_agent", json!({ "message": message }))])
}

fn call(clause: &Clause, rest: &str) -> Option<Vec<Step>> {
    let rest = after(rest, &["the tool", "tool"]);
    let (name, arguments) = clause.pair(rest, &[" with ", ": ", ":"]).unwrap_or((clause.word(rest), String::new()));
    let arguments = match serde_json::from_str(&arguments) {
        Ok(value) => value,
        Err(_) if arguments.is_empty() => json!({}),
        // Invalid JSON may be intended.
        Err(_) => JsonValue::String(arguments),
    };
    Some(vec![Step::call(&name, arguments)])
}

fn custom(clause: &Clause, rest: &str) -> Option<Vec<Step>> {
    let (name, input) = clause.pair(rest, &[" with ", ": ", ":"])?;
    Some(vec![Step::Call(ToolAction::Custom { name, input })])
}

fn fail(clause: &Clause, rest: &str) -> Option<Vec<Step>> {
    let words = clause.word(after(rest, &["with", "as", "by"]));
    let (words, times) = failures::times(&words);
    let error = failures::by_name(words)?;
    Some(vec![Step::Fail { error: Box::new(error), times }])
}

fn repeat(clause: &Clause, rest: &str) -> Option<Vec<Step>> {
    let (count, rest) = number(rest)?;
    let rest = after(rest, &["times", "time"]).trim_start_matches([':', ' ', ',']);
    let inner = parse(&clause.whole(rest));
    let count = usize::try_from(count).ok()?.min(MAX_REPEATS).min(MAX_STEPS / inner.len().max(1));
    Some(std::iter::repeat_n(inner, count).flatten().collect())
}

/// "use 1000 tokens", "use 1000 input and 50 output tokens".
fn usage(_: &Clause, rest: &str) -> Option<Vec<Step>> {
    rest.contains("token").then_some(())?;
    let (first, more) = number(rest)?;
    let second = more.find(|char: char| char.is_ascii_digit()).and_then(|at| number(&more[at..]));
    let output = second.map_or(0, |(number, _)| number);
    Some(vec![Step::Usage(tokens(first, 0, output, 0))])
}

/// "limit 80%".
fn limit(_: &Clause, rest: &str) -> Option<Vec<Step>> {
    let (percent, rest) = number(rest)?;
    rest.trim_start().starts_with('%').then_some(())?;
    let window = RateLimitWindow {
        used_percent: i32::try_from(percent).unwrap_or(100),
        window_duration_mins: Some(300),
        resets_at: None,
    };
    let mut limits = event_json::no_limits();
    (limits.limit_id, limits.primary) = (Some("codex".into()), Some(window));
    Some(vec![Step::Event(Box::new(Ok(ModelEvent::RateLimits(limits))))])
}

/// Returns the responses of the first thread of a scenario.
fn play(clause: &Clause, rest: &str) -> Option<Vec<Step>> {
    let file = clause.word(after(rest, &["the scenario", "scenario", "the file", "file"]));
    Some(match super::scenario::load(std::path::Path::new(&file)) {
        Ok(threads) => {
            let answers = threads.into_iter().next().unwrap_or_default();
            answers.into_iter().flat_map(|answer| answer.into_iter().chain([Step::Break])).collect()
        }
        Err(error) => vec![Step::say(error.to_string())],
    })
}

/// Strips one of these words from the start.
fn after<'a>(text: &'a str, words: &[&str]) -> &'a str {
    let text = text.trim_start();
    for word in words {
        if let Some(start) = text.get(..word.len())
            && start.eq_ignore_ascii_case(word)
            && text[word.len()..].chars().next().is_none_or(|next| !next.is_alphanumeric())
        {
            return text[word.len()..].trim_start_matches([' ', ':']);
        }
    }
    text
}

/// Strips one of these phrases from the end.
fn before<'a>(text: &'a str, words: &[&str]) -> &'a str {
    let text = text.trim_end();
    for word in words {
        let at = text.len().wrapping_sub(word.len());
        if text.get(at..).is_some_and(|end| end.eq_ignore_ascii_case(word)) {
            return text[..at].trim_end();
        }
    }
    text
}

/// Splits a list at line ends, or else at commas.
fn list(text: &str) -> Vec<String> {
    let by_lines = text.lines().filter(|line| !line.trim().is_empty()).count() > 1;
    let parts: Vec<&str> = if by_lines { text.lines().collect() } else { text.split(',').collect() };
    let plain = |part: &&str| part.trim().trim_start_matches(['-', '*', ' ']).trim_start_matches("or ").to_owned();
    parts.iter().map(plain).filter(|part| !part.is_empty()).collect()
}

fn number(text: &str) -> Option<(i64, &str)> {
    let text = text.trim_start();
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// "100 ms", "2 s", "1 minute".
fn duration(text: &str) -> Option<Duration> {
    let (count, unit) = number(text)?;
    let count = u64::try_from(count).ok()?;
    let unit = unit.trim();
    let duration = match unit.split(|char: char| !char.is_ascii_alphabetic()).next().unwrap_or_default() {
        "ms" | "millisecond" | "milliseconds" => Duration::from_millis(count),
        "" | "s" | "second" | "seconds" => Duration::from_secs(count),
        "m" | "min" | "minute" | "minutes" => Duration::from_secs(count.saturating_mul(60)),
        _ => return None,
    };
    Some(duration.min(MAX_WAIT))
}

/// Quotes a word for the shell.
fn quoted(text: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_./".contains(char);
    if !text.is_empty() && text.chars().all(plain) { text.into() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests;
