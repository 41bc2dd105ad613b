//! Runs the program in a terminal and types.

use loomd_exec::{Command, Environment, Exit, Process, Size, StartedProcess, Stdio};
use loomd_testkit::{Home, TIMEOUT};
use tokio::time::timeout;

use crate::common::{LOOMD, in_time};

/// A text that the screen ends with, or a whole line anywhere on it, and what is typed then.
pub type TypedAfter<'a> = (&'a str, &'a str);

pub struct TerminalOutput {
    pub text: String,
    pub exit: Exit,
}

/// Runs the program to its end in a terminal of this width.
pub async fn at_terminal(
    home: &Home,
    cols: u16,
    env: &[(&str, &str)],
    args: &[&str],
    typed: &[TypedAfter<'_>],
) -> TerminalOutput {
    program_at_terminal(home, cols, env, &[&[LOOMD], args].concat(), typed).await
}

/// Runs any program to its end in a terminal of this width.
pub async fn program_at_terminal(
    home: &Home,
    cols: u16,
    env: &[(&str, &str)],
    argv: &[&str],
    typed: &[TypedAfter<'_>],
) -> TerminalOutput {
    let path = std::env::var("PATH").unwrap_or_default();
    let (codex_home, user) = (home.path().display().to_string(), home.user().display().to_string());
    let own = [("PATH", path.as_str()), ("CODEX_HOME", &codex_home), ("HOME", &user), ("TERM", "xterm")];
    let env: Environment = own.iter().chain(env).copied().collect();
    let command = Command::new(argv.iter().copied(), home.work(), env);
    let StartedProcess { mut process, stdin, mut stdout, .. } =
        Process::start(&command, Stdio::Terminal(Size { rows: 50, cols })).await.unwrap();
    let mut stdin = stdin.expect("a terminal has a keyboard");
    let (mut bytes, mut buffer, mut typed) = (Vec::new(), [0; 4096], typed.iter());
    let mut next = typed.next();
    let reading = async {
        loop {
            // Reading from a terminal whose process has ended fails.
            let Ok(count @ 1..) = stdout.read(&mut buffer).await else { break };
            bytes.extend_from_slice(&buffer[..count]);
            let text = String::from_utf8_lossy(&bytes);
            if let Some((prompt, line)) = next
                && (text.ends_with(prompt) || prompt.ends_with('\n') && text.contains(prompt))
            {
                stdin.write_all(line.as_bytes()).await.unwrap();
                next = typed.next();
            }
        }
    };
    let ended = timeout(TIMEOUT, reading).await.is_ok();
    let screen = String::from_utf8_lossy(&bytes);
    assert!(ended && next.is_none(), "it ended: {ended}; not typed: {next:?}; the screen: {screen:?}");
    let exit = in_time("the exit of the program", process.wait()).await.unwrap();
    TerminalOutput { text: settled(&String::from_utf8_lossy(&bytes)), exit }
}

/// What stays on the screen: without the status line, and with varying parts replaced by names.
fn settled(text: &str) -> String {
    let mut pieces = text.split("\r\u{1b}[K");
    let mut left = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let is_spinner = piece.trim_start_matches("\u{1b}[2m").starts_with(|c| ('⠀'..='⣿').contains(&c));
        left += if is_spinner { "" } else { piece };
    }
    let line = |line: &str| match line.split_once("✓ done, ") {
        Some((before, _)) => format!("{before}✓ done, (a while)"),
        None => line.replace('\u{1b}', "␛"),
    };
    let text = left.replace("\r\n", "\n").lines().map(line).collect::<Vec<_>>().join("\n");
    match text.find("\nthread") {
        Some(at) => format!("{}\n(how to go on)", &text[..at]),
        None => text,
    }
}
