//! `loomd run` at a terminal: wide, narrow, without colour, and with answers typed.

use insta::assert_snapshot;
use loomd_exec::Exit;
use loomd_testkit::model::{custom_call, function_call, message, shell, streamed};
use loomd_testkit::{Home, ScriptedModel};
use serde_json::json;

use super::home;
use super::pty::{self, TerminalOutput, TypedAfter};

/// Runs `loomd run` to its end in a terminal of this width.
async fn at_terminal(
    home: &Home,
    cols: u16,
    env: &[(&str, &str)],
    args: &[&str],
    typed: &[TypedAfter<'_>],
) -> TerminalOutput {
    pty::at_terminal(home, cols, env, &[&["run"], args].concat(), typed).await
}

async fn model() -> ScriptedModel {
    let model = ScriptedModel::start().await;
    let plan = json!({ "plan": [
        { "step": "Look at everything that is there", "status": "completed" },
        { "step": "Tell", "status": "in_progress" },
    ] });
    model
        .reply(
            streamed(&["I will look at ", "everything that is there."])
                .then(function_call("update_plan", plan, "p"))
                .then(shell("seq 20")),
        )
        .reply(message("It is all there, as it should be."));
    model
}

#[tokio::test]
async fn a_turn_in_a_wide_terminal() {
    let model = model().await;
    let screen = at_terminal(&home(&model), 80, &[("NO_COLOR", "1")], &["look"], &[]).await;
    assert_eq!(screen.exit, Exit::Code(0), "{}", screen.text);
    assert_snapshot!(screen.text, @r"
    I will look at everything that is there.

    Plan
      ✔ Look at everything that is there
      ▸ Tell

    $ seq 20
      │ 1
      │ 2
      │ 3
      │ 4
      │ 5
      │ 6
      │ … 10 more lines
      │ 17
      │ 18
      │ 19
      │ 20
      ✓ done, (a while)

    It is all there, as it should be.

    tokens: 20 in, 10 out; 0% of the window
    (how to go on)
    ");
}

#[tokio::test]
async fn a_turn_in_a_narrow_terminal() {
    let model = model().await;
    let screen = at_terminal(&home(&model), 24, &[("NO_COLOR", "1")], &["look"], &[]).await;
    assert_eq!(screen.exit, Exit::Code(0), "{}", screen.text);
    assert_snapshot!(screen.text, @r"
    I will look at
    everything that is
    there.

    Plan
      ✔ Look at everything …
      ▸ Tell

    $ seq 20
      │ 1
      │ 2
      │ 3
      │ 4
      │ 5
      │ 6
      │ … 10 more lines
      │ 17
      │ 18
      │ 19
      │ 20
      ✓ done, (a while)

    It is all there, as it
    should be.

    tokens: 20 in, 10 out;
    0% of the window
    (how to go on)
    ");
}

#[tokio::test]
async fn a_turn_in_colour() {
    let model = model().await;
    let screen = at_terminal(&home(&model), 80, &[], &["look"], &[]).await;
    assert!(screen.text.contains("␛[36m$␛[0m ␛[1mseq 20␛[0m"), "{}", screen.text);
}

#[tokio::test]
async fn approvals_are_answered_by_typed_lines() {
    for (typed, exit, made) in [
        (vec![("> ", "y\r")], 0, true),
        (vec![("> ", "s\r")], 0, true),
        (vec![("> ", "what\r"), ("> ", "y\r")], 0, true),
        (vec![("> ", "n\r")], 3, false),
        (vec![("> ", "c\r")], 3, false),
        // The end of the input, and Ctrl-C.
        (vec![("> ", "\u{4}")], 3, false),
        (vec![("> ", "\u{3}")], 3, false),
    ] {
        let model = ScriptedModel::start().await;
        model.reply(shell("touch made")).reply(message("So be it."));
        let home = home(&model);
        let screen = at_terminal(&home, 80, &[("NO_COLOR", "1")], &["make it", "--ask", "untrusted"], &typed).await;
        assert_eq!((screen.exit, home.work().join("made").exists()), (Exit::Code(exit), made), "{}", screen.text);
        assert!(screen.text.contains("? Run this command?") && screen.text.contains("touch made"), "{}", screen.text);
    }
}

#[tokio::test]
async fn secrets_are_not_echoed() {
    let model = ScriptedModel::start().await;
    let question = |id: &str, secret: bool| {
        json!({ "id": id, "header": "Sign in", "question": format!("Your {id}?"), "isSecret": secret,
            "options": [{ "label": "none", "description": "There is none." }] })
    };
    let questions = json!({ "questions": [question("password", true), question("name", false)] });
    model.reply(function_call("request_user_input", questions, "ask")).reply(message("Thanks."));
    let home = home(&model).with("features.default_mode_request_user_input = true");
    let typed = [("> ", "hunter2\r"), ("> ", "Ada\r")];
    let screen = at_terminal(&home, 80, &[("NO_COLOR", "1")], &["sign in"], &typed).await;
    assert_eq!(screen.exit, Exit::Code(0), "{}", screen.text);
    assert_snapshot!(screen.text, @r"
    ? Sign in: Your password?
      1  none — There is none.
    > 

    ? Sign in: Your name?
      1  none — There is none.
    > Ada

    Thanks.

    tokens: 20 in, 10 out; 0% of the window
    (how to go on)
    ");
    let told = model.call(1).await.tool_output("ask").cloned().unwrap();
    assert_eq!(told, r#"{"answers":{"name":{"answers":["Ada"]},"password":{"answers":["hunter2"]}}}"#);
}

#[tokio::test]
async fn a_change_is_shown_with_its_approval_question() {
    let model = ScriptedModel::start().await;
    let patch = "*** Begin Patch\n*** Add File: note.txt\n+one\n+two\n*** End Patch";
    model.reply(custom_call("apply_patch", patch, "c")).reply(message("Written."));
    let home = home(&model);
    let args = ["write", "--ask", "untrusted", "--model", "gpt-5.1-codex"];
    let screen = at_terminal(&home, 80, &[("NO_COLOR", "1")], &args, &[("> ", "y\r")]).await;
    assert_eq!(screen.exit, Exit::Code(0), "{}", screen.text);
    assert_snapshot!(screen.text, @r"
    + note.txt
      │ +one
      │ +two

    ? Make this change?
      y  yes
      s  yes, also for the rest of the session
      n  no
      c  no, and stop
    > y

      ✓ changed

    Written.

    tokens: 20 in, 10 out; 0% of the window
    (how to go on)
    ");
}
