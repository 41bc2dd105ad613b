//! The actions of a command that clients show: reading a file, listing files, searching, or unknown. Only plain scripts
//! are parsed; a script with one unknown command is unknown as a whole.

mod classify;
mod formatting;

use loomd_protocol::CommandAction;

use crate::quote::join;
use crate::script::{ListOperator, base_name, named_script_of, plain};
use crate::word::Word;
pub(crate) use classify::is_lines;
use classify::{ActionKind, classify};
use formatting::only_formats;

const CONNECTORS: &[&str] = &["&&", "||", ";", "|"];

/// The actions of a command line.
pub fn command_actions(argv: &[String]) -> Vec<CommandAction> {
    if let Some(script) = named_script_of(argv) {
        return script_actions(script);
    }
    if let [shell, flag, script] = argv
        && matches!(base_name(shell), "pwsh" | "powershell")
        && ["-command", "-c"].contains(&flag.to_ascii_lowercase().as_str())
    {
        return unknown(script.clone());
    }
    let parts: Vec<_> = argv.split(|word| CONNECTORS.contains(&word.as_str())).map(<[_]>::to_vec).collect();
    known_actions(&parts, None).unwrap_or_else(|| unknown(join(argv)))
}

fn unknown(command: String) -> Vec<CommandAction> {
    vec![CommandAction::Unknown { command }]
}

fn script_actions(script: &str) -> Vec<CommandAction> {
    let actions = plain(script).and_then(|commands| {
        let piped = commands.iter().any(|command| command.operator == ListOperator::Pipe);
        let words = |command: &[Word]| command.iter().map(Word::text).collect::<Vec<_>>();
        let commands: Vec<Vec<String>> = commands.iter().map(|command| words(&command.words)).collect();
        // Such a pipe is shown whole, because it names the lines of the file that were read.
        let lines = piped && commands.iter().any(|words| words[0] == "sed" && words.iter().any(|word| word == "-n"));
        let parts: Vec<_> = commands.into_iter().filter(|words| !only_formats(words)).collect();
        if parts.is_empty() { None } else { known_actions(&parts, lines.then_some(script)) }
    });
    actions.unwrap_or_else(|| unknown(script.to_owned()))
}

/// One command of a command line, with the folder that a preceding `cd` changed to.
struct LineCommand<'a> {
    words: &'a [String],
    base: String,
}

/// `None` when a command is unknown.
fn known_actions(parts: &[Vec<String>], whole_read: Option<&str>) -> Option<Vec<CommandAction>> {
    let mut base = String::new();
    let mut left = Vec::new();
    for words in parts {
        if words.first().is_some_and(|name| name == "cd") {
            if let Some(folder) = classify::operands(&words[1..], &[]).last() {
                base = joined(&base, folder);
            }
        } else {
            left.push(LineCommand { words, base: base.clone() });
        }
    }
    drop_noise(&mut left);
    let mut actions = Vec::new();
    let only = left.len() == 1;
    for LineCommand { words, base } in left {
        let command = || join(words);
        let action = match classify(words)? {
            ActionKind::Read(path) => CommandAction::Read {
                command: whole_read.filter(|_| only).map_or_else(command, str::to_owned),
                name: short(path),
                path: joined(&base, path),
            },
            ActionKind::List(path) => CommandAction::ListFiles { command: command(), path: path.map(short) },
            ActionKind::Search(query, path) => {
                CommandAction::Search { command: command(), query: query.map(str::to_owned), path: path.map(short) }
            }
        };
        actions.push(action);
    }
    actions.dedup();
    Some(actions)
}

/// Drops a leading `echo`, `true`, and `nl` without operands, unless they are all there is.
fn drop_noise(parts: &mut Vec<LineCommand>) {
    loop {
        let before = parts.len();
        if parts.len() > 1 && parts[0].words.first().is_some_and(|name| name == "echo") {
            parts.remove(0);
        }
        if parts.len() > 1 {
            parts.retain(|part| part.words != ["true"]);
        }
        if parts.len() > 1
            && let Some(at) = parts.iter().position(|part| {
                part.words.first().is_some_and(|name| name == "nl")
                    && part.words[1..].iter().all(|word| word.starts_with('-'))
            })
        {
            parts.remove(at);
        }
        if parts.len() == before {
            return;
        }
    }
}

fn joined(base: &str, path: &str) -> String {
    if base.is_empty() || is_absolute(path) {
        path.to_owned()
    } else if base.ends_with('/') {
        format!("{base}{path}")
    } else {
        format!("{base}/{path}")
    }
}

fn is_absolute(path: &str) -> bool {
    let mut chars = path.chars();
    let drive = chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.next() == Some(':')
        && chars.next().is_some_and(|c| matches!(c, '\\' | '/'));
    path.starts_with('/') || path.starts_with("\\\\") || drive
}

/// Folders that are skipped when a path is shortened.
const DULL: &[&str] = &["build", "dist", "node_modules", "src"];

/// The last part of a path that is not one of [`DULL`].
fn short(path: &str) -> String {
    let path = path.replace('\\', "/");
    let path = path.trim_end_matches('/');
    let telling = path.rsplit('/').find(|part| !part.is_empty() && !DULL.contains(part));
    telling.unwrap_or(path).to_owned()
}
