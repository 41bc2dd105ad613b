//! What is refused is on the screen with its reason; what goes on is shown to its end, and nothing is left behind.

use loomd_exec::Exit;
use loomd_testkit::model::{custom_call, function_call, message, shell};
use loomd_testkit::{Home, ScriptedModel, Signal};
use serde_json::json;

use super::{command, home};
use crate::common::{in_time, output, send, until, until_caught};

#[tokio::test]
async fn a_patch_and_an_image_that_are_refused_are_shown_with_the_reason() {
    let model = ScriptedModel::start().await;
    let patch = "*** Begin Patch\n*** Update File: note.txt\n@@\n-absent\n+x\n*** End Patch";
    model
        .reply(custom_call("apply_patch", patch, "p"))
        .reply(function_call("view_image", json!({ "path": "note.txt" }), "v"))
        .reply(message("So be it."));
    let home = home(&model);
    std::fs::write(home.work().join("note.txt"), "text\n").unwrap();
    let ended = output(&mut command(&home, &["run", "go", "--model", "gpt-5.1-codex"])).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "So be it.\n"), "{}", ended.stderr);
    for words in
        ["⚙ apply_patch\n", "Failed to find expected lines", "⚙ view_image\n", "unsupported image", "✗ refused"]
    {
        assert!(ended.stderr.contains(words), "no {words:?} in {}", ended.stderr);
    }
}

#[tokio::test]
async fn approvals_reach_the_terminal_when_the_output_goes_elsewhere() {
    for json in [true, false] {
        let model = ScriptedModel::start().await;
        model.reply(shell("touch made")).reply(message("Made."));
        let home = home(&model);
        let flag = if json { " --json" } else { "" };
        let program = crate::common::LOOMD;
        let script = format!("'{program}' run 'make it' --ask untrusted{flag} > out 2> errors; echo status $?");
        let screen = at_program(&home, &["sh", "-c", &script], &[("> ", "y\r")]).await;
        assert!(screen.contains("? Run this command?") && screen.contains("touch made"), "{screen}");
        assert!(screen.contains("status 0"), "{screen}");
        assert!(home.work().join("made").exists());
        let out = std::fs::read_to_string(home.work().join("out")).unwrap();
        if json {
            assert!(out.lines().all(|line| line.starts_with('{')), "{out}");
        } else {
            assert_eq!(out, "Made.\n");
        }
    }
}

/// Runs another program at a terminal, and returns the screen.
async fn at_program(home: &Home, argv: &[&str], typed: &[(&str, &str)]) -> String {
    let screen = super::pty::program_at_terminal(home, 80, &[("NO_COLOR", "1")], argv, typed).await;
    assert_eq!(screen.exit, Exit::Code(0), "{}", screen.text);
    screen.text
}

#[tokio::test]
async fn a_command_that_outlives_the_turn_is_shown_and_recorded() {
    let model = ScriptedModel::start().await;
    let call = json!({ "cmd": "echo begun; exec sleep 1000", "yield_time_ms": 250 });
    model.reply(function_call("exec_command", call, "c")).reply(message("It runs."));
    let home = home(&model).with("features.unified_exec = true");
    let ended = output(&mut command(&home, &["run", "serve"])).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "It runs.\n"), "{}", ended.stderr);
    for words in ["$ echo begun; exec sleep 1000\n", "  │ begun\n", "  … still running\n", "stopping: ", "  ✗ "] {
        assert!(ended.stderr.contains(words), "no {words:?} in {}", ended.stderr);
    }
    let shown = output(&mut command(&home, &["threads", "show", "last"])).await;
    for words in ["$ echo begun; exec sleep 1000\n", "  │ begun\n", "  ✗ "] {
        assert!(shown.stdout.contains(words), "no {words:?} in {}", shown.stdout);
    }
}

#[tokio::test]
async fn an_interrupted_turn_leaves_nothing_in_the_project() {
    for signal in [Signal::INT, Signal::KILL] {
        let model = ScriptedModel::start().await;
        model.reply(shell("touch runs; exec sleep 1000"));
        let home = home(&model);
        let args = ["run", "take long", "--sandbox", "workspace-write", "--json"];
        let mut command = command(&home, &args);
        let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        let (runs, placeholder) = (home.work().join("runs"), home.work().join(".codex"));
        model.call(0).await;
        until_caught(child.id().unwrap(), Signal::INT).await;
        let begun = async || runs.exists() || child_ended(&child);
        until("start of the command", begun).await;
        if !runs.exists() {
            eprintln!("skipped: no sandbox here");
            return;
        }
        send(signal, &child);
        in_time("the end of the program", child.wait()).await.unwrap();
        until("removal of .codex", async || !placeholder.exists()).await;
    }
}

/// Whether a child is a zombie: it ended and was not waited for.
fn child_ended(child: &tokio::process::Child) -> bool {
    let stat = child.id().and_then(|id| std::fs::read_to_string(format!("/proc/{id}/stat")).ok());
    stat.is_none_or(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
}

#[tokio::test]
async fn output_is_on_the_screen_before_the_command_ends() {
    let model = ScriptedModel::start().await;
    // The command reads from the terminal of the test through a file: it ends only after its first line was seen.
    model.reply(shell("echo begun; until [ -e go ]; do sleep 0.02; done; echo ended")).reply(message("Well."));
    let home = home(&model);
    let program = crate::common::LOOMD;
    // `read` gets a line that is typed once the first line of output is on the screen.
    let script = format!("'{program}' run wait < /dev/null & read line; touch go; wait");
    let screen = at_program(&home, &["sh", "-c", &script], &[("  │ begun\r\n", "go\r")]).await;
    assert!(screen.contains("  │ begun") && screen.contains("  │ ended"), "{screen}");
}
