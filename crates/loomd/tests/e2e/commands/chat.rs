//! The chat: `loomd` alone at a terminal.

use std::time::Duration;

use base64::Engine as _;
use loomd_exec::{Command, Environment, Exit, Input, Output, Process, Size, StartedProcess, Stdio};
use loomd_testkit::model::{custom_call, message, shell, streamed};
use loomd_testkit::{Gate, Home, ScriptedModel, TIMEOUT, TerminalScreen};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

use super::home;
use crate::common::{LOOMD, in_time};

const ROWS: u16 = 30;
/// Shown while no turn runs and nothing is typed.
const READY: &str = "Ask, or /help";

/// An image of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/// A chat in a terminal.
struct Chat {
    process: Process,
    stdin: Input,
    stdout: Output,
    screen: TerminalScreen,
    /// Everything that was written to the terminal.
    bytes: Vec<u8>,
}

impl Chat {
    /// Starts a chat and waits for its prompt.
    async fn start(home: &Home, cols: u16, env: &[(&str, &str)], args: &[&str]) -> Self {
        let mut chat = Self::start_unready(home, cols, env, args).await;
        chat.until(READY).await;
        chat
    }

    async fn start_unready(home: &Home, cols: u16, env: &[(&str, &str)], args: &[&str]) -> Self {
        let path = std::env::var("PATH").unwrap_or_default();
        let (codex_home, user) = (home.path().display().to_string(), home.user().display().to_string());
        let own = [("PATH", path.as_str()), ("CODEX_HOME", &codex_home), ("HOME", &user), ("TERM", "xterm")];
        let env: Environment = own.iter().chain(env).copied().collect();
        let command = Command::new([&[LOOMD], args].concat(), home.work(), env);
        let StartedProcess { process, stdin, stdout, .. } =
            Process::start(&command, Stdio::Terminal(Size { rows: ROWS, cols })).await.unwrap();
        let stdin = stdin.expect("a terminal has a keyboard");
        let screen = TerminalScreen::new(cols.into(), ROWS.into());
        Self { process, stdin, stdout, screen, bytes: Vec::new() }
    }

    async fn press(&mut self, keys: &str) {
        in_time("the terminal takes keys", self.stdin.write_all(keys.as_bytes())).await.unwrap();
    }

    /// Waits until the screen contains `text`.
    async fn until(&mut self, text: &str) {
        self.until_shown(text, |screen| screen.contains(text)).await;
    }

    async fn until_shown(&mut self, what: &str, is_shown: impl Fn(&str) -> bool) {
        let reading = async {
            while !is_shown(&self.screen.text()) {
                if !read(&mut self.stdout, &mut self.screen, &mut self.bytes).await {
                    return false;
                }
            }
            true
        };
        let shown = timeout(TIMEOUT, reading).await;
        assert_eq!(shown, Ok(true), "waiting for {what:?}; the screen:\n{}", self.screen.text());
    }

    /// Sends a line, and waits for a text that comes after it.
    async fn say(&mut self, line: &str, answer: &str) {
        self.press(&format!("{line}\r")).await;
        self.until(answer).await;
    }

    /// Reads to the end and returns the exit.
    async fn end(&mut self) -> Exit {
        let reading = async { while read(&mut self.stdout, &mut self.screen, &mut self.bytes).await {} };
        let ended = timeout(TIMEOUT, reading).await.is_ok();
        assert!(ended, "the chat did not end; the screen:\n{}", self.screen.text());
        in_time("the exit of the chat", self.process.wait()).await.unwrap()
    }

    /// Leaves the chat at an empty prompt.
    async fn leave(&mut self) {
        self.until(READY).await;
        self.press("\u{4}").await;
        assert_eq!(self.end().await, Exit::Code(0), "{}", self.screen.text());
    }

    fn text(&self) -> String {
        self.screen.text()
    }
}

/// Reads once; false at the end. Reading from a terminal whose process has ended fails.
async fn read(stdout: &mut Output, screen: &mut TerminalScreen, bytes: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 4096];
    let Ok(count @ 1..) = stdout.read(&mut buffer).await else { return false };
    screen.feed(&buffer[..count]);
    bytes.extend_from_slice(&buffer[..count]);
    true
}

#[tokio::test]
async fn a_chat_keeps_its_thread_from_turn_to_turn() {
    let model = ScriptedModel::start().await;
    model.reply(streamed(&["# Ti", "tle\n\nSome **bo", "ld** text."])).reply(message("Again."));
    let home = home(&model);
    let mut chat = Chat::start(&home, 80, &[], &[]).await;
    chat.say("hello", "tokens:").await;
    // Rendered: the marks are colours.
    assert!(chat.text().contains("\nTitle\n\nSome bold text.\n"), "{}", chat.text());
    chat.say("and now", "Again.").await;
    assert_eq!(model.call(1).await.user_texts().iter().filter(|text| ["hello", "and now"].contains(text)).count(), 2);
    chat.leave().await;
    assert!(!chat.text().contains(READY), "the prompt is erased: {}", chat.text());
}

#[tokio::test]
async fn nothing_is_wider_than_a_narrow_terminal_and_no_colour_means_none() {
    let model = ScriptedModel::start().await;
    let table = "| a | b |\n|---|---|\n| one | a long text in a table that does not fit into sixty columns |\n";
    model.reply(message(&format!("**A paragraph** that is longer than sixty columns are.\n\n{table}")));
    let home = home(&model);
    let mut chat = Chat::start(&home, 60, &[("NO_COLOR", "1")], &[]).await;
    chat.say("/help", "Ctrl-Z").await;
    chat.say("go", "tokens:").await;
    assert!(chat.text().contains("**A paragraph** that is longer"), "{}", chat.text());
    assert!(chat.text().lines().all(|line| line.chars().count() < 60), "{}", chat.text());
    chat.leave().await;
    let written = String::from_utf8_lossy(&chat.bytes);
    let coloured = written
        .split("\u{1b}[")
        .skip(1)
        .any(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m'));
    assert!(!coloured, "{written:?}");
}

#[tokio::test]
async fn a_dumb_terminal_gets_lines_without_escape_sequences() {
    let model = ScriptedModel::start().await;
    model.reply(shell("touch made")).reply(message("It is **made**."));
    let home = home(&model);
    let mut chat = Chat::start_unready(&home, 80, &[("TERM", "dumb")], &["-a", "untrusted"]).await;
    chat.until("\n>").await;
    chat.press("make it\r").await;
    chat.until("n  no").await;
    chat.press("y\r").await;
    chat.until("tokens:").await;
    assert!(chat.text().contains("It is **made**.") && home.work().join("made").exists(), "{}", chat.text());
    chat.press("/permissions\r").await;
    chat.until("3  full-access").await;
    chat.press("1\r").await;
    chat.until("permissions: read-only").await;
    chat.press("\u{4}").await;
    assert_eq!(chat.end().await, Exit::Code(0), "{}", chat.text());
    assert!(!chat.bytes.contains(&0x1b), "{:?}", String::from_utf8_lossy(&chat.bytes));
}

#[tokio::test]
async fn control_sequences_of_the_model_do_not_reach_the_terminal() {
    let model = ScriptedModel::start().await;
    model.reply(message("safe\u{1b}]0;stolen title\u{7}\u{1b}[2J\u{9b}31m text\u{202e}."));
    let home = home(&model);
    let mut chat = Chat::start(&home, 80, &[], &[]).await;
    chat.say("go", "tokens:").await;
    chat.leave().await;
    let written = String::from_utf8_lossy(&chat.bytes);
    for hostile in ["stolen title", "\u{1b}[2J", "\u{9b}", "\u{202e}", "\u{7}"] {
        assert!(!written.contains(hostile), "{hostile:?} in {written:?}");
    }
}

#[tokio::test]
async fn an_approval_sets_the_draft_aside_and_gives_it_back() {
    let model = ScriptedModel::start().await;
    let gate = Gate::new();
    model.reply(shell("touch made").after(&gate)).reply(message("So be it."));
    let home = home(&model);
    let mut chat = Chat::start(&home, 80, &[], &["-a", "untrusted"]).await;
    chat.press("make it\r").await;
    chat.until("interrupts").await;
    chat.press("my draft").await;
    chat.until("> my draft").await;
    gate.open();
    chat.until("c  no, and stop").await;
    chat.press("perhaps\r").await;
    chat.until("Please type one of").await;
    assert!(!home.work().join("made").exists());
    chat.press("y\r").await;
    chat.until("tokens:").await;
    assert!(home.work().join("made").exists() && chat.text().contains("> my draft"), "{}", chat.text());
    chat.press("\u{15}").await;
    chat.leave().await;
}

#[tokio::test]
async fn a_change_is_shown_before_it_is_approved() {
    let model = ScriptedModel::start().await;
    let patch = "*** Begin Patch\n*** Add File: note.txt\n+one\n*** End Patch";
    model.reply(custom_call("apply_patch", patch, "c")).reply(message("Not written."));
    let home = home(&model);
    let mut chat = Chat::start(&home, 80, &[], &["-a", "untrusted", "-m", "gpt-5.1-codex"]).await;
    chat.say("write", "c  no, and stop").await;
    assert!(chat.text().contains("+ note.txt\n  │ +one\n\n? Make this change?"), "{}", chat.text());
    chat.say("n", "Not written.").await;
    assert!(!home.work().join("note.txt").exists());
    chat.leave().await;
}

#[tokio::test]
async fn input_during_a_turn_steers_it() {
    let model = ScriptedModel::start().await;
    let gate = Gate::new();
    model.reply(message("First.").after(&gate)).reply(message("Second."));
    let home = home(&model);
    let mut chat = Chat::start(&home, 80, &[], &[]).await;
    chat.press("begin\r").await;
    model.call(0).await;
    chat.say("and more", "added to the running turn").await;
    gate.open();
    chat.until("tokens:").await;
    let text = chat.text();
    assert!(text.contains("First.") && text.contains("Second.") && text.matches("tokens:").count() == 1, "{text}");
    assert!(model.call(1).await.user_texts().contains(&"and more"));
    chat.leave().await;
}

#[tokio::test]
async fn ctrl_c_interrupts_the_turn_and_twice_at_an_empty_prompt_leaves() {
    let model = ScriptedModel::start().await;
    let gate = Gate::new();
    model.reply(message("Never.").after(&gate)).reply(message("Still here."));
    let home = home(&model);
    let mut chat = Chat::start(&home, 80, &[], &[]).await;
    chat.press("begin\r").await;
    model.call(0).await;
    chat.press("\u{3}").await;
    chat.until("\ninterrupted").await;
    chat.say("are you there", "Still here.").await;
    chat.until(READY).await;
    chat.press("typed\u{3}").await;
    chat.until(READY).await;
    chat.press("\u{3}").await;
    chat.until("press Ctrl-C again to leave").await;
    chat.press("\u{3}").await;
    assert_eq!(chat.end().await, Exit::Code(0), "{}", chat.text());
}

#[tokio::test]
async fn a_paste_of_200_lines_is_folded_and_sent_whole() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let mut chat = Chat::start(&home, 80, &[], &[]).await;
    let lines: String = (1..=200).map(|line| format!("line {line}\r")).collect();
    chat.press(&format!("see \u{1b}[200~{lines}\u{1b}[201~")).await;
    chat.until("> see [paste 1: 200 lines]").await;
    chat.say("", "tokens:").await;
    let sent = (1..=200).fold("see ".to_owned(), |text, line| format!("{text}line {line}\n"));
    assert_eq!(model.call(0).await.user_texts().last().copied(), Some(sent.trim_end()));
    assert!(chat.text().contains("… 190 more lines"), "{}", chat.text());
    chat.leave().await;
}

#[tokio::test]
async fn a_resize_draws_the_prompt_again_without_remains() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let mut chat = Chat::start(&home, 80, &[], &[]).await;
    chat.press(&"word ".repeat(12)).await;
    chat.until_shown("the draft", |screen| screen.matches("word").count() == 12).await;
    for cols in [40, 100] {
        chat.process.terminal().unwrap().resize(Size { rows: ROWS, cols }).unwrap();
        chat.screen.resize(cols.into(), ROWS.into());
        chat.press("x").await;
        // A word may be broken at the end of a row.
        let is_whole = |screen: &str, end: &str| {
            let joined: String = screen.split_whitespace().collect();
            joined.matches("word").count() == 12
                && joined.matches(">word").count() == 1
                && joined.contains(&format!("wordword{end}scripted"))
        };
        chat.until_shown("the draft once", |screen| is_whole(screen, "x")).await;
        chat.press("\u{7f}").await;
        chat.until_shown("the draft without x", |screen| is_whole(screen, "")).await;
    }
    chat.press("\u{15}").await;
    chat.leave().await;
}

#[tokio::test]
async fn a_suspended_chat_goes_on_where_it_was() {
    let model = ScriptedModel::start().await;
    model.reply(message("Back again."));
    let home = home(&model);
    let mut chat = Chat::start(&home, 80, &[], &[]).await;
    let pid = chat.process.pid();
    chat.press("half a li\u{1a}").await;
    let stopped = async {
        loop {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            if stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T')) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    in_time("the chat stops", stopped).await;
    chat.until_shown("no prompt", |screen| !screen.contains("> half")).await;
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::CONT).unwrap();
    chat.until("> half a li").await;
    chat.press("ne\r").await;
    chat.until("Back again.").await;
    assert_eq!(model.call(0).await.user_texts().last().copied(), Some("half a line"));
    chat.leave().await;
}

#[tokio::test]
async fn settings_apply_to_the_next_turn() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let mut chat = Chat::start(&home, 80, &[], &[]).await;
    chat.say("/model gpt-5.1-codex", "model: gpt-5.1-codex").await;
    chat.say("/effort high", "effort: high").await;
    chat.say("/mode planning", "unknown mode `planning`").await;
    chat.say("/permissions read-only", "permissions: read-only, asks on request").await;
    chat.say("/modell x", "did you mean `/model`?").await;
    chat.press("\u{15}").await;
    chat.say("go", "tokens:").await;
    let call = model.call(0).await;
    assert_eq!((&call.body["model"], &call.body["reasoning"]["effort"]), (&"gpt-5.1-codex".into(), &"high".into()));
    chat.say("/status", "account").await;
    assert!(
        chat.text().contains("gpt-5.1-codex (") && chat.text().contains("permissions  read-only"),
        "{}",
        chat.text()
    );
    chat.leave().await;
}

#[tokio::test]
async fn threads_are_started_resumed_from_a_list_forked_and_exported() {
    let model = ScriptedModel::start().await;
    model.reply(message("The first answer.")).reply(message("Another.")).reply(message("Continued."));
    let home = home(&model);
    let mut chat = Chat::start(&home, 80, &[], &[]).await;
    chat.say("a question about herons", "The first answer.").await;
    chat.until(READY).await;
    chat.say("/new", "new thread: ").await;
    chat.say("a question about storks", "Another.").await;
    chat.until(READY).await;
    chat.press("/resume\r").await;
    chat.until("▸  now  a question about herons").await;
    chat.press("\r").await;
    chat.until("resumed: ").await;
    chat.until_shown("the history", |screen| screen.matches("The first answer.").count() == 2).await;
    chat.say("/fork", "forked: ").await;
    chat.say("go on", "Continued.").await;
    let call = model.call(2).await;
    assert!(call.user_texts().contains(&"a question about herons"), "{:?}", call.user_texts());
    assert!(!call.user_texts().contains(&"a question about storks"), "{:?}", call.user_texts());
    chat.until(READY).await;
    chat.say("/export out.md", "written to ").await;
    let exported = std::fs::read_to_string(home.work().join("out.md")).unwrap();
    assert!(exported.contains("a question about herons") && exported.contains("Continued."), "{exported}");
    chat.say("/export out.md", "cannot write ").await;
    chat.leave().await;
}

#[tokio::test]
async fn files_are_completed_and_commands_run_in_the_shell() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    std::fs::write(home.work().join("heron.txt"), "wings").unwrap();
    let mut chat = Chat::start(&home, 80, &[], &[]).await;
    chat.press("read @hero").await;
    chat.until("▸ heron.txt").await;
    chat.press("\t").await;
    chat.until("> read @heron.txt").await;
    chat.say("", "tokens:").await;
    assert_eq!(model.call(0).await.user_texts().last().copied(), Some("read @heron.txt"));
    chat.say("!cat heron.txt", "│ wings").await;
    chat.until(READY).await;
    chat.say("what was it", "tokens:").await;
    chat.until_shown("the second turn", |screen| screen.matches("tokens:").count() == 2).await;
    assert!(model.call(1).await.user_texts().iter().any(|text| text.contains("wings")));
    chat.leave().await;
}

#[tokio::test]
async fn an_image_that_a_prompt_names_is_attached() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let png = base64::engine::general_purpose::STANDARD.decode(PNG).unwrap();
    std::fs::write(home.work().join("my shot.png"), png).unwrap();
    let mut chat = Chat::start(&home, 80, &[], &[]).await;
    chat.say("what is in my\\ shot.png?", "tokens:").await;
    assert!(chat.text().contains("image: ") && chat.text().contains("my shot.png"), "{}", chat.text());
    let body = model.call(0).await.body.to_string();
    assert!(body.contains("input_image") && body.contains("data:image/png;base64,"), "{body}");
    chat.leave().await;
}

#[tokio::test]
async fn earlier_inputs_are_there_in_the_next_chat() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let mut chat = Chat::start(&home, 80, &[], &[]).await;
    chat.say("the first input", "tokens:").await;
    chat.leave().await;
    let mut chat = Chat::start(&home, 80, &[], &[]).await;
    chat.press("\u{1b}[A").await;
    chat.until("> the first input").await;
    chat.press("\u{15}\u{12}FIRST").await;
    chat.until("search: FIRST  the first input").await;
    chat.press("\u{1b}").await;
    chat.leave().await;
}

#[tokio::test]
async fn without_a_terminal_the_help_is_printed() {
    let model = ScriptedModel::start().await;
    let output = super::command(&home(&model), &[]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    let help = String::from_utf8(output.stderr).unwrap();
    assert!(help.contains("Usage: loomd") && help.contains("app-server"), "{help}");
}
