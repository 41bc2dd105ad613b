use std::os::unix::process::ExitStatusExt;

use loomd_testkit::{Home, Launch, Signal};
use serde_json::json;

use crate::{panic_of, scripted};

#[tokio::test]
async fn the_server_gets_its_own_homes_and_no_keys() {
    let home = Home::empty();
    let script = r#"
        printf '{"method":"env","params":["%s","%s","%s","%s","%s","%s"]}\n' \
            "$CODEX_HOME" "$HOME" "$PWD" "$RUST_LOG" "${OPENAI_API_KEY-none}" "$EXTRA"
    "#;
    let launch = Launch::new("/bin/sh").args(["-c", script]);
    let server = launch.clone().env("EXTRA", "given").stdio(&home);
    assert_eq!(
        server.notification("env").await,
        json!([home.path(), home.user(), home.work(), "warn", "none", "given"])
    );
    let elsewhere = launch.env_remove("RUST_LOG").cwd(home.user()).stdio(&home);
    assert_eq!(elsewhere.notification("env").await, json!([home.path(), home.user(), home.user(), "", "none", ""]));
}

#[tokio::test]
async fn requests_go_to_stdin_and_responses_come_from_stdout() {
    let home = Home::empty();
    let server = scripted(&home, r#"read -r line; printf '{"id":0,"result":%s}\n' "$line""#);
    let result = server.request("thread/list", json!({ "limit": 1 })).await;
    assert_eq!(result, Ok(json!({ "method": "thread/list", "id": 0, "params": { "limit": 1 } })));
}

#[tokio::test]
async fn closing_stdin_lets_the_server_exit() {
    let home = Home::empty();
    let mut server = scripted(&home, r#"cat >/dev/null; echo '{"method":"last"}'; echo bye >&2; exit 3"#);
    server.close_stdin().await;
    assert_eq!(server.wait_exit().await.code(), Some(3));
    server.closed().await;
    assert_eq!(server.methods(), ["last"]);
    assert_eq!(server.stderr().to_end().await, "bye\n");
}

#[tokio::test]
async fn a_signal_reaches_the_server() {
    let home = Home::empty();
    let mut server = scripted(&home, "exec cat");
    server.signal(Signal::TERM);
    assert_eq!(server.wait_exit().await.signal(), Some(Signal::TERM.as_raw()));
}

#[tokio::test]
async fn a_dropped_server_is_killed() {
    let home = Home::empty();
    let server = scripted(&home, "echo started >&2; exec sleep 1000");
    let stderr = server.stderr().clone();
    drop(server);
    stderr.to_end().await;
}

#[tokio::test]
async fn a_failed_wait_quotes_stderr() {
    let words = panic_of(async {
        let home = Home::empty();
        let server = scripted(&home, r#"echo '{"method":"one"}'; echo "it hurts" >&2"#);
        server.stderr().to_end().await;
        server.notification("two").await
    })
    .await;
    assert_eq!(
        words,
        "the server ended the connection before notification two; seen so far (1): [one]; stderr: it hurts"
    );
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let words = panic_of(async { Launch::new("/no/such/program").stdio(&Home::empty()) }).await;
    assert_eq!(words, "the program under test does not exist: \"/no/such/program\"");
    let words = panic_of(async { Launch::new("no-such-program").stdio(&Home::empty()) }).await;
    assert!(words.starts_with("cannot start the program under test, \"no-such-program\": "), "{words}");
}
