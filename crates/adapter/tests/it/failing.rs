//! Failures and their phases.

use std::time::Duration;

use loomd_adapter::protocol::{CodexErrorInfo, TurnStatus};
use loomd_adapter::{Adapter, Event, FailureKind, Limits, Phase, Program, Session, Text};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::mock::{mock, opened, prompt};

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only decoded")]
struct Summary {
    title: String,
}

#[tokio::test]
async fn a_failed_turn_has_the_phase_info_and_details_of_its_error() {
    let cap = json!({ "modelCap": { "model": "m", "reset_after_seconds": 60 } });
    let table = [
        (json!("usageLimitExceeded"), Phase::Budget),
        (json!("contextWindowExceeded"), Phase::Response),
        (json!({ "responseStreamDisconnected": { "httpStatusCode": null } }), Phase::Request),
        (json!("sandboxError"), Phase::Tool),
        (cap, Phase::Budget),
        (Value::Null, Phase::Response),
    ];
    for (info, phase) in table {
        let (adapter, mut accepted) = mock();
        let (prompt, mut session) = (prompt(), Session::new());
        let playing = async {
            let mut mock = accepted.recv().await.unwrap();
            mock.turn().await;
            mock.end("failed", json!({ "message": "no", "codexErrorInfo": info, "additionalDetails": "more" })).await;
            mock.left().await;
        };
        let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
        let error = response.unwrap_err();
        let failure = error.failure().unwrap();
        assert_eq!((failure.phase, failure.kind, failure.message.as_str()), (phase, FailureKind::TurnFailed, "no"));
        let expected: Option<CodexErrorInfo> = serde_json::from_value(info.clone()).unwrap();
        assert_eq!((&failure.error_info, failure.additional_details.as_deref()), (&expected, Some("more")), "{info}");
        let events = session.events();
        let Some(Event::PromptExecuted(executed)) = events.last().map(|event| &**event) else { panic!("{events:?}") };
        assert_eq!(executed.status, TurnStatus::Failed);
    }
}

#[tokio::test]
async fn an_output_that_does_not_fit_fails_in_the_response_phase() {
    for (text, words) in [
        ("I cannot do that.", "expected value at line 1 column 1; it is: I cannot do that."),
        (r#"{"name":"x"}"#, "missing field `title`"),
    ] {
        let (adapter, mut accepted) = mock();
        let (prompt, mut session) = (prompt(), Session::new());
        let playing = async {
            let mut mock = accepted.recv().await.unwrap();
            mock.turn().await;
            mock.finish(text).await;
        };
        let (response, ()) = tokio::join!(adapter.evaluate::<Summary>(&prompt, &mut session, Limits::none()), playing);
        let error = response.unwrap_err();
        let failure = error.failure().unwrap();
        assert_eq!((failure.phase, failure.kind), (Phase::Response, FailureKind::Output));
        assert!(failure.message.contains(words), "{failure}");
    }
}

#[tokio::test]
async fn a_turn_without_a_message_or_interrupted_by_another_fails_in_the_response_phase() {
    for (status, kind) in [("completed", FailureKind::Output), ("interrupted", FailureKind::Interrupted)] {
        let (adapter, mut accepted) = mock();
        let (prompt, mut session) = (prompt(), Session::new());
        let playing = async {
            let mut mock = accepted.recv().await.unwrap();
            mock.turn().await;
            mock.end(status, Value::Null).await;
            mock.left().await;
        };
        let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
        let error = response.unwrap_err();
        assert_eq!((error.phase(), error.failure().unwrap().kind), (Some(Phase::Response), kind));
    }
}

#[tokio::test]
async fn refused_requests_fail_in_the_request_phase() {
    for (method, kind) in [("thread/start", FailureKind::Thread), ("turn/start", FailureKind::TurnStart)] {
        let (adapter, mut accepted) = mock();
        let (prompt, mut session) = (prompt(), Session::new());
        let playing = async {
            let mut mock = accepted.recv().await.unwrap();
            mock.handshake().await;
            if method == "turn/start" {
                mock.answer("thread/start", opened("t")).await;
            }
            mock.refuse(method, "not today").await;
            mock.left().await;
        };
        let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
        let error = response.unwrap_err();
        let failure = error.failure().unwrap();
        assert_eq!((failure.phase, failure.kind), (Phase::Request, kind));
        assert!(failure.message.contains("not today"), "{failure}");
    }
}

#[tokio::test]
async fn a_connection_that_is_lost_during_the_turn_fails_in_the_response_phase() {
    let (adapter, mut accepted) = mock();
    let (prompt, mut session) = (prompt(), Session::new());
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.turn().await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
    let error = response.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!((failure.phase, failure.kind), (Phase::Response, FailureKind::Connection));
    assert_eq!(failure.thread_id.as_deref(), Some("t"));
}

#[tokio::test]
async fn invalid_settings_are_named() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only decoded")]
    struct Counts {
        by_name: std::collections::BTreeMap<String, u32>,
    }
    let (adapter, _accepted) = mock();
    let (prompt, mut session) = (prompt(), Session::new());
    let server = loomd_adapter::McpServer::http("http://127.0.0.1:1");
    let relative = adapter.clone().cwd("here").evaluate::<Text>(&prompt, &mut session, Limits::none()).await;
    assert_eq!(relative.unwrap_err().to_string(), "request: invalid `cwd`: here is not absolute");
    let named = adapter.clone().mcp_server("a b", server).evaluate::<Text>(&prompt, &mut session, Limits::none()).await;
    assert!(named.unwrap_err().to_string().contains("invalid name of an MCP server, `a b`"));
    let typed = adapter.evaluate::<Counts>(&prompt, &mut session, Limits::none()).await;
    assert!(typed.unwrap_err().to_string().contains("at `/by_name`: it has a map"));
}

/// A shell script as a server: the handshake, then `then`.
fn script(then: &str) -> Adapter {
    let hello =
        r#"{"id":0,"result":{"userAgent":"a/1","codexHome":"/h","platformFamily":"unix","platformOs":"linux"}}"#;
    let script = format!("read line; echo '{hello}'; read line; {then}");
    Adapter::new(Program::new("/bin/sh").args(["-c", &script])).cwd("/tmp").interrupt_grace(Duration::from_millis(50))
}

#[tokio::test]
async fn the_end_of_stderr_is_part_of_the_failure() {
    let (prompt, mut session) = (prompt(), Session::new());
    for then in [
        "read line; echo out of memory >&2; exit 3",
        r#"read line; echo out of memory >&2; echo '{"id":1,"error":{"code":-32603,"message":"no"}}'; read line"#,
    ] {
        let error = script(then).evaluate::<Text>(&prompt, &mut session, Limits::none()).await.unwrap_err();
        let failure = error.failure().unwrap();
        assert_eq!((failure.phase, failure.kind), (Phase::Request, FailureKind::Thread));
        assert_eq!(failure.stderr.as_deref(), Some("out of memory\n"), "{failure}");
    }
}

#[tokio::test]
async fn a_server_that_hangs_is_killed_at_the_deadline() {
    let (prompt, mut session) = (prompt(), Session::new());
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let then = format!("echo $$ > {}; trap '' TERM; while :; do sleep 1; done", pid.display());
    let limits = Limits::within(Duration::from_millis(500));
    let error = script(&then).evaluate::<Text>(&prompt, &mut session, limits).await.unwrap_err();
    assert_eq!(error.failure().unwrap().kind, FailureKind::Deadline);
    // The process is reaped when the evaluation returns.
    let pid: u32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists() || !cfg!(target_os = "linux"));
}

#[tokio::test]
async fn a_program_that_does_not_exist_fails_in_the_request_phase() {
    let (prompt, mut session) = (prompt(), Session::new());
    let adapter = Adapter::new(Program::new("/nowhere/loomd")).cwd("/tmp");
    let error = adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()).await.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!((failure.phase, failure.kind), (Phase::Request, FailureKind::Connect));
    assert!(failure.message.contains("cannot connect to /nowhere/loomd"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_handshake_without_an_answer_times_out() {
    let (adapter, mut accepted) = mock();
    let adapter = adapter.startup_timeout(Duration::from_secs(2));
    let (prompt, mut session) = (prompt(), Session::new());
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.request("initialize").await;
        mock.left().await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
    assert_eq!(response.unwrap_err().to_string(), "request: no answer to initialize within 2s");
}

#[tokio::test]
async fn a_dropped_evaluation_interrupts_its_turn_and_leaves_the_session_usable() {
    let (adapter, mut accepted) = mock();
    let (prompt, mut session) = (prompt(), Session::new());
    let mut mock = {
        let evaluating = adapter.evaluate::<Text>(&prompt, &mut session, Limits::none());
        let playing = async {
            let mut mock = accepted.recv().await.unwrap();
            mock.turn().await;
            mock
        };
        tokio::select! {
            biased;
            mock = playing => mock,
            _ = evaluating => panic!("the turn goes on"),
        }
    };
    assert_eq!(mock.answer("turn/interrupt", json!({})).await, json!({ "threadId": "t", "turnId": "u" }));
    mock.left().await;
    session.append("still there");
    assert_eq!(session.latest::<&str>().as_deref(), Some(&"still there"));
}
