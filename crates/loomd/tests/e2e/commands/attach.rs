//! `loomd run --attach`: turns in a running server.

use loomd_testkit::model::message;
use loomd_testkit::{Home, ScriptedModel};

use super::{command, home};
use crate::common::{RunResult, launch, output};

async fn run(home: &Home, args: &[&str]) -> RunResult {
    output(&mut command(home, &[&["run"], args].concat())).await
}

#[tokio::test]
async fn a_turn_runs_in_a_running_server_and_can_be_resumed_there() {
    let model = ScriptedModel::start().await;
    model.reply(message("First.")).reply(message("Second.")).reply(message("Third."));
    let server_home = home(&model);
    let server = launch().websocket(&server_home).await;
    // The client has no configuration, and no model of its own.
    let client_home = Home::empty();
    let url = format!("ws://localhost:{}", server.port());
    let attach = ["--attach", url.as_str()];
    let ended = run(&client_home, &[&attach[..], &["begin"]].concat()).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "First.\n"), "{}", ended.stderr);
    let hint = format!("resume with `loomd run --attach {url} --resume last`");
    assert!(ended.stderr.lines().any(|line| line == hint), "{}", ended.stderr);
    // The same folder, so that the server finds the last thread of it.
    let ended = run(&client_home, &[&attach[..], &["--resume", "last", "go on", "-c", "model=other"]].concat()).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Second.\n"), "{}", ended.stderr);
    let second = model.call(1).await;
    assert_eq!(second.body["model"], "other");
    assert!(second.user_texts().ends_with(&["begin", "go on"]), "{:?}", second.user_texts());
    let sandbox = [&attach[..], &["--resume", "last", "go on", "--sandbox", "read-only"]].concat();
    let ended = run(&client_home, &sandbox).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("is in use in the server with another sandbox"), "{}", ended.stderr);
    // The server goes on.
    assert_eq!(run(&client_home, &[&attach[..], &["again"]].concat()).await.stdout, "Third.\n");
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_named() {
    let home = Home::empty();
    let missing = home.path().join("no.sock");
    let unix = format!("unix://{}", missing.display());
    for url in [unix.as_str(), "ws://127.0.0.1:1"] {
        let ended = run(&home, &["--attach", url, "hi"]).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{}", ended.stderr);
        let start = format!("error: cannot connect to {url}: ");
        assert!(ended.stderr.starts_with(&start) && ended.stderr.lines().count() == 1, "{}", ended.stderr);
    }
    let ended =
        run(&home, &["--attach", "ws://127.0.0.1:1", "--attach-token-env", "NO_SUCH_TOKEN_FOR_A_TEST", "hi"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("NO_SUCH_TOKEN_FOR_A_TEST"), "{}", ended.stderr);
}
