//! The log on stderr: level and format as configured, and never a secret.

use loomd_testkit::{Home, Launch};
use serde_json::Value;

use crate::common::{launch, ping};

/// Signed with [`KEY`], with a distant expiry.
const JWT: &str =
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjk5OTk5OTk5OTk5fQ.usQEtKF259tV1yvf5DpDD_dKbyidVaVHzP0tdTXNbLM";
const KEY: &str = "0123456789abcdef0123456789abcdef";

/// One input per level: garbage is an error, a response to nothing a warning, a notification info.
const OCCASIONS: &str = "garbage\n{\"id\":\"nothing\",\"result\":{}}\n{\"method\":\"initialized\"}\n";

#[tokio::test]
async fn logs_can_be_switched_off() {
    assert_eq!(log(launch().env("RUST_LOG", "off")).await, "");
}

#[tokio::test]
async fn the_default_level_is_error() {
    for launch in [
        launch().env_remove("RUST_LOG"),
        launch().env("RUST_LOG", ""),
        launch().env("RUST_LOG", "error"),
        launch().env("RUST_LOG", "=,/not a filter/"),
    ] {
        let log = log(launch).await;
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains(" ERROR "), "{log}");
    }
}

#[tokio::test]
async fn rust_log_raises_the_level() {
    let warnings = log(launch().env("RUST_LOG", "warn")).await;
    assert!(warnings.contains(" ERROR ") && warnings.contains(" WARN ") && !warnings.contains(" INFO "), "{warnings}");
    let notes = log(launch().env("RUST_LOG", "info")).await;
    assert!(notes.contains(" ERROR ") && notes.contains(" WARN ") && notes.contains(" INFO "), "{notes}");
    assert!(!notes.contains('\u{1b}'), "no colours for what is no terminal");
}

#[tokio::test]
async fn json_logs_are_one_object_per_line() {
    for format in ["json", " JSON "] {
        let log = log(launch().env("RUST_LOG", "trace").env("LOG_FORMAT", format)).await;
        assert!(log.lines().count() >= 3, "{log}");
        for line in log.lines() {
            let entry: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            for member in ["timestamp", "level", "target"] {
                assert!(entry[member].is_string(), "{member} is missing: {line}");
            }
            assert!(entry["fields"]["message"].is_string(), "the message is missing: {line}");
        }
    }
}

#[tokio::test]
async fn a_flood_of_garbage_is_logged_a_few_times() {
    let home = Home::empty();
    let mut server = launch().env_remove("RUST_LOG").stdio(&home);
    server.initialize().await;
    server.send_raw("garbage\n".repeat(10_000)).await;
    ping(&server).await;
    server.close_stdin().await;
    server.wait_exit().await;
    let log = server.stderr().to_end().await;
    assert!((1..100).contains(&log.lines().count()), "{} lines", log.lines().count());
    assert!(log.contains("count=8192"), "the log has the number of lines: {log}");
}

#[tokio::test]
async fn tokens_are_never_logged() {
    let home = Home::empty();
    let key = home.write("key", KEY);
    let token = home.write("token", "a-capability-token");
    let by_key = ["--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", key.to_str().unwrap()];
    let by_token = ["--ws-auth", "capability-token", "--ws-token-file", token.to_str().unwrap()];
    for (flags, good, bad) in
        [(by_key, JWT, "aaaa.bbbb.a-wrong-signature"), (by_token, "a-capability-token", "a-wrong-token")]
    {
        let mut server = launch().args(flags).env("RUST_LOG", "trace").websocket(&home).await;
        let client = server.connect_to("/", &[("Authorization", &format!("Bearer {good}"))]).await;
        client.initialize().await;
        ping(&client).await;
        assert_eq!(server.upgrade("/", &[("Authorization", &format!("Bearer {bad}"))]).await.status, 401);
        assert_eq!(server.upgrade("/", &[("Authorization", bad)]).await.status, 401);
        client.close().await;
        client.closed().await;
        // A clean exit, so that the last lines are written.
        server.signal(loomd_testkit::Signal::TERM);
        server.wait_exit().await;
        let log = server.stderr().to_end().await;
        assert!(log.contains("refused a client"), "everything is logged: {log}");
        for secret in [good, bad, KEY] {
            for part in secret.split('.') {
                assert!(!log.contains(part), "{part} is in the log: {log}");
            }
        }
    }
}

/// The whole log of a server that gets [`OCCASIONS`].
async fn log(launch: Launch) -> String {
    let home = Home::empty();
    let mut server = launch.stdio(&home);
    server.send_raw(OCCASIONS).await;
    server.close_stdin().await;
    server.closed().await;
    assert_eq!(server.wait_exit().await.code(), Some(0));
    server.stderr().to_end().await
}
