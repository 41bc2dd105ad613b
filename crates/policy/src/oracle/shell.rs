//! Runs lines in a shell in which every command is a function that records its arguments.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::vocabulary::NAMES;

/// The marks that are recorded at the end of a command and of a line.
const COMMAND: &str = "<end-of-command>";
const LINE: &str = "<end-of-line>";
/// The mark that is recorded for a newline.
const NEWLINE: &str = "<newline>";

#[derive(Clone, Copy, PartialEq)]
pub(super) enum ShellFamily {
    Bash,
    /// Without braces, and with names of functions that are identifiers.
    Posix,
}

/// Files that globs find.
pub(super) const FILES: &[&str] =
    &["-exec", "-delete", "-rf", "a", "b", "ab", "a b", "*", "?", "[a]", "{a,b}", "aXb", "push", "f"];

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The commands that a shell runs for each line.
pub(super) fn run(
    shell: &str,
    family: ShellFamily,
    folder: &Path,
    lines: &[&str],
    status: u8,
) -> Vec<Vec<Vec<String>>> {
    let mut script = String::new();
    match family {
        ShellFamily::Bash => {
            // At a newline it would be written in two pieces, and another command of a pipe in between.
            let record = format!(r#"builtin printf '%s\0' "${{@//$'\n'/{NEWLINE}}}" '{COMMAND}' >&9"#);
            let _ = writeln!(script, "rec() {{ {record}; builtin return {status}; }}");
            let _ = writeln!(script, "command_not_found_handle() {{ rec \"$@\"; }}");
            for name in NAMES.iter().filter(|name| !name.contains('\n')) {
                let _ = writeln!(
                    script,
                    "builtin eval {} 2>&8",
                    quoted(&format!("function {name} {{ rec {} \"$@\"; }}", quoted(name)))
                );
            }
            let _ = writeln!(
                script,
                "for name in $(compgen -b); do case $name in builtin|printf) ;; *) builtin eval \"function $name {{ rec $name \\\"\\$@\\\"; }}\" 2>&8;; esac; done"
            );
            let _ = writeln!(script, "function printf {{ rec printf \"$@\"; }}");
        }
        ShellFamily::Posix => {
            let record = format!(r#"command printf '%s\0' "$@" '{COMMAND}' >&9"#);
            let _ = writeln!(script, "rec() {{ {record}; return {status}; }}");
            for name in POSIX_NAMES {
                let _ = writeln!(script, "{name}() {{ rec {name} \"$@\"; }}");
            }
        }
    }
    let (eval, mark) = match family {
        ShellFamily::Bash => ("builtin eval", format!(r"builtin printf '%s\0' '{LINE}' >&9")),
        ShellFamily::Posix => ("eval", format!(r"command printf '%s\0' '{LINE}' >&9")),
    };
    for line in lines {
        let _ = writeln!(script, "{eval} {} </dev/null >/dev/null\n{mark}", quoted(line));
    }
    let file = folder.join("script");
    let records = folder.join("records");
    fs::write(&file, script).unwrap();
    let place = folder.join("files");
    let redirected = format!("exec 9>{} 8>/dev/null; . {}", records.display(), file.display());
    let mut process = Command::new(shell);
    process.args(["-c", &redirected]).current_dir(place).env_clear();
    process.envs([("PATH", "/nonexistent"), ("HOME", "/home/of/user"), ("LC_ALL", "C.UTF-8")]);
    process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    process.status().unwrap();
    let text = String::from_utf8_lossy(&fs::read(&records).unwrap()).into_owned();
    let mut all = Vec::new();
    let (mut commands, mut words) = (Vec::new(), Vec::new());
    for field in text.split_terminator('\0') {
        match field {
            LINE => all.push(std::mem::take(&mut commands)),
            COMMAND => commands.push(std::mem::take(&mut words)),
            word => words.push(word.replace(NEWLINE, "\n")),
        }
    }
    all
}

/// Names that dash accepts for functions.
pub(super) const POSIX_NAMES: &[&str] = &["zz", "yy", "xx", "git", "find", "rm", "ls", "echo", "test", "read", "cd"];
