//! Commands that are patches in disguise. A model without a patch tool, or one that forgot that it has
//! one, calls `apply_patch` as if it were a program. Only forms that do nothing else count: everything a
//! shell would have to work out is left to the shell.

use crate::parse;

/// A patch that was found in a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interception {
    /// The text of the patch, and the folder to go to first, as written.
    Patch { text: String, folder: Option<String> },
    /// A patch where a script should be: nothing says that it should be applied.
    NotCalled,
}

/// Looks for a patch in a command: `apply_patch <text>`, or a shell whose script is a single call with a
/// heredoc, perhaps after a `cd`.
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

/// One word of a shell that means just itself, bare or in quotes.
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
