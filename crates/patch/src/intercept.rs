//! Finds patches in shell commands. A model without a patch tool may run `apply_patch` as if it were a program. Only
//! forms that do nothing else count; everything that needs a shell to evaluate is left to the shell.

use crate::parse;

/// A patch found in a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interception {
    /// The text of the patch, and the argument of a `cd` before it.
    Patch { text: String, folder: Option<String> },
    /// A patch in place of a script, without a call of `apply_patch`.
    NotCalled,
}

/// Finds a patch in a command: `apply_patch <text>`, or a shell whose script is a single call with a heredoc,
/// optionally after a `cd`.
pub fn intercept<S: AsRef<str>>(argv: &[S]) -> Option<Interception> {
    let argv: Vec<_> = argv.iter().map(AsRef::as_ref).collect();
    match *argv {
        [name, text] if is_call(name) => Some(Interception::Patch { text: text.into(), folder: None }),
        [script] => not_called(script),
        [shell, flag, script] if takes_script(shell, flag) => heredoc(script).or_else(|| not_called(script)),
        _ => None,
    }
}

fn is_call(name: &str) -> bool {
    matches!(name, "apply_patch" | "applypatch")
}

fn not_called(script: &str) -> Option<Interception> {
    parse(script).is_ok().then_some(Interception::NotCalled)
}

fn takes_script(shell: &str, flag: &str) -> bool {
    let name = shell.rsplit(['/', '\\']).next().unwrap_or(shell);
    match name.strip_suffix(".exe").unwrap_or(name) {
        "bash" | "zsh" | "sh" | "dash" | "ksh" => matches!(flag, "-c" | "-lc"),
        "pwsh" | "powershell" => matches!(flag, "-Command" | "-c"),
        "cmd" => flag == "/c",
        _ => false,
    }
}

fn heredoc(script: &str) -> Option<Interception> {
    let (command, rest) = script.trim().split_once('\n')?;
    let (folder, call) = match command.split_once("&&") {
        Some((first, call)) => (Some(word(first.trim().strip_prefix("cd")?.strip_prefix([' ', '\t'])?.trim())?), call),
        None => (None, command),
    };
    let (name, delimiter) = call.split_once("<<")?;
    if !is_call(name.trim()) {
        return None;
    }
    let (tabs, delimiter) = delimiter.strip_prefix('-').map_or((false, delimiter), |rest| (true, rest));
    let delimiter = word(delimiter.trim())?;

    let mut lines = rest.lines().map(|line| if tabs { line.trim_start_matches('\t') } else { line });
    let mut text = String::new();
    loop {
        match lines.next()? {
            line if line == delimiter => break,
            line => text.extend([line, "\n"]),
        }
    }
    lines.all(|line| line.trim().is_empty()).then_some(Interception::Patch { text, folder })
}

/// A shell word without expansions, bare or quoted.
fn word(text: &str) -> Option<String> {
    let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    let (inner, special) = match (quoted('\''), quoted('"')) {
        (Some(inner), _) => (inner, "'"),
        (_, Some(inner)) => (inner, "\"$`\\!"),
        _ => (text, "'\"$`\\!*?[]{}()<>|&;#~"),
    };
    let bare = inner.len() == text.len();
    let fine = |c: char| !(special.contains(c) || bare && c.is_whitespace());
    (!inner.is_empty() && inner.chars().all(fine)).then(|| inner.to_owned())
}
