//! Where the prompt of `loomd run` comes from.

use std::process::Stdio;

use loomd_exec::Exit;
use loomd_testkit::model::message;
use loomd_testkit::{Home, ScriptedModel};
use tokio::io::AsyncWriteExt;

use super::pty::at_terminal;
use super::{command, home};
use crate::common::{in_time, output};

/// The last message of the user that the model received.
async fn prompt_of(model: &ScriptedModel, call: usize) -> String {
    model.call(call).await.user_texts().last().unwrap().to_string()
}

async fn piped(home: &Home, args: &[&str], stdin: &str) {
    let mut command = command(home, args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).await.unwrap();
    let output = in_time("the end of the program", child.wait_with_output()).await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn a_prompt_is_followed_by_what_is_piped_in() {
    let model = ScriptedModel::start().await;
    model.reply(message("a")).reply(message("b")).reply(message("c"));
    let home = home(&model);
    piped(&home, &["run", "review", "this"], "-old\n+new\n").await;
    assert_eq!(prompt_of(&model, 0).await, "review this\n\n<stdin>\n-old\n+new\n</stdin>");
    piped(&home, &["run", "review this"], "\n").await;
    assert_eq!(prompt_of(&model, 1).await, "review this");
    piped(&home, &["run", "-"], "only this\n").await;
    assert_eq!(prompt_of(&model, 2).await, "only this\n");
}

#[tokio::test]
async fn the_words_of_a_command_line_are_one_prompt() {
    let model = ScriptedModel::start().await;
    model.reply(message("Hi."));
    let ended = output(&mut command(&home(&model), &["run", "hello", "wide", "--ephemeral", "world"])).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Hi.\n"), "{}", ended.stderr);
    assert_eq!(prompt_of(&model, 0).await, "hello wide world");
}

#[tokio::test]
async fn the_printed_hint_works_as_printed() {
    let model = ScriptedModel::start().await;
    model.reply(message("First.")).reply(message("Second."));
    let home = home(&model);
    let ended = output(&mut command(&home, &["run", "begin with this"])).await;
    let hint = ended.stderr.lines().find_map(|line| line.strip_prefix("resume with `loomd ")?.strip_suffix('`'));
    let args: Vec<&str> = hint.unwrap_or_else(|| panic!("no hint in {}", ended.stderr)).split(' ').collect();
    assert_eq!(args, ["run", "--resume", "last"]);
    let screen = at_terminal(&home, 80, &[("NO_COLOR", "1")], &args, &[("prompt> ", "and then?\r")]).await;
    assert_eq!(screen.exit, Exit::Code(0), "{}", screen.text);
    assert!(screen.text.starts_with("resuming: begin with this\nprompt> and then?\n\nSecond.\n"), "{}", screen.text);
    assert!(model.call(1).await.user_texts().ends_with(&["begin with this", "and then?"]));
}

#[tokio::test]
async fn an_empty_line_at_the_prompt_starts_no_turn() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    for typed in ["\r", "\u{4}"] {
        let screen = at_terminal(&home, 80, &[("NO_COLOR", "1")], &["run"], &[("prompt> ", typed)]).await;
        assert_eq!(screen.exit, Exit::Code(2), "{}", screen.text);
        assert!(screen.text.contains("error: the prompt is empty"), "{}", screen.text);
    }
    assert_eq!(model.calls().len(), 0);
}
