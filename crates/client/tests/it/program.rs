//! Servers that are programs: shell scripts.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use loomd_client::protocol::ModelListParams;
use loomd_client::{Client, ConnectError, Endpoint, Error, Options, Program};

use serde_json::json;

use crate::script::initialized;

/// A shell script that makes the server's part of the handshake and then runs `then`.
fn script(then: &str) -> Program {
    let hello = format!("read line; echo '{{\"id\":0,\"result\":{}}}'; read line; {then}", initialized());
    Program::new("/bin/sh").args(["-c", &hello])
}

async fn connect(then: &str) -> Client {
    Client::connect(script(then), Options::default()).await.expect("a connection")
}

#[tokio::test]
async fn the_exit_of_the_program_fails_pending_requests_with_its_status_and_stderr() {
    let client = connect("read line; echo 'out of memory' >&2; exit 3").await;
    let error = client.list_models(ModelListParams::default()).await.unwrap_err();
    let words = "the server exited with exit status: 3; stderr:\nout of memory";
    assert_eq!(error.to_string(), words);
    let Error::Disconnected(ended) = error else { panic!("{error:?}") };
    assert_eq!((ended.status.unwrap().code(), ended.stderr.as_str()), (Some(3), "out of memory\n"));
}

#[tokio::test]
async fn only_the_end_of_a_long_stderr_is_kept() {
    let client = connect("read line; yes 'word' | head -n 100000 >&2; echo last >&2; exit 1").await;
    let Err(Error::Disconnected(ended)) = client.list_models(ModelListParams::default()).await else {
        panic!("an end expected")
    };
    assert!(ended.stderr.len() <= 8 * 1024 && ended.stderr.ends_with("word\nlast\n"), "{}", ended.stderr.len());
}

#[tokio::test]
async fn noise_and_partial_lines_on_stdout_are_tolerated() {
    let client = connect(
        "read line; echo 'Welcome!'; printf '{\"id\":1,'; sleep 0.05; printf '\"result\":{\"data\":[],'; \
         printf '\"nextCursor\":\"c\"}}\\n'; read line",
    )
    .await;
    let listed = client.list_models(ModelListParams::default()).await.unwrap();
    assert_eq!(listed.next_cursor.as_deref(), Some("c"));
}

#[tokio::test]
async fn an_inherited_stderr_is_not_captured() {
    let client = Client::connect(script("cat > /dev/null; echo bye >&2").inherit_stderr(), Options::default());
    let ended = client.await.expect("a connection").close().await;
    assert_eq!((ended.status.unwrap().code(), ended.stderr.as_str()), (Some(0), ""));
}

#[tokio::test]
async fn a_program_that_does_not_exit_is_killed_after_its_grace() {
    let program = script("while :; do sleep 1; done").close_grace(Duration::from_millis(10));
    let ended = Client::connect(program, Options::default()).await.expect("a connection").close().await;
    assert_eq!(ended.status.unwrap().signal(), Some(9));
}

#[tokio::test]
async fn closing_closes_stdin_and_waits_for_the_exit() {
    let client = connect("cat > /dev/null; echo bye >&2; exit 5").await;
    let ended = client.close().await;
    assert_eq!((ended.status.unwrap().code(), ended.stderr.as_str()), (Some(5), "bye\n"));
}

#[tokio::test]
async fn an_inherited_pipe_does_not_delay_the_disconnect() {
    let client = connect("read line; sleep 60 & exit 4").await;
    let Err(Error::Disconnected(ended)) = client.list_models(ModelListParams::default()).await else {
        panic!("an end expected")
    };
    assert_eq!(ended.status.unwrap().code(), Some(4));
}

#[tokio::test]
async fn an_exit_before_the_handshake_reports_status_and_stderr() {
    let program = Program::new("/bin/sh").args(["-c", "echo 'Error: bad flag' >&2; exit 2"]);
    let error = Client::connect(program, Options::default()).await.err().unwrap();
    assert_eq!(error.to_string(), "the server exited with exit status: 2; stderr:\nError: bad flag");
}

#[tokio::test]
async fn connect_errors_name_the_endpoint() {
    let connect = async |endpoint: Endpoint| Client::connect(endpoint, Options::default()).await.err().unwrap();
    let error = connect(Endpoint::spawn("/no/such/program")).await;
    assert_eq!(error.to_string(), "cannot connect to /no/such/program: No such file or directory (os error 2)");
    let error = connect(Endpoint::unix("/no/such/socket")).await;
    assert_eq!(error.to_string(), "cannot connect to unix:///no/such/socket: No such file or directory (os error 2)");
    for (url, expected) in [("http://127.0.0.1:1", "`wss://`"), ("nonsense", "URL")] {
        let error = connect(Endpoint::websocket(url)).await;
        let Error::Connect { source: source @ (ConnectError::BadUrl | ConnectError::NotWs), .. } = error else {
            panic!("{url}: {error}")
        };
        assert!(source.to_string().contains(expected), "{url}: {source}");
    }
}

#[tokio::test]
async fn arguments_environment_and_working_directory_reach_the_program() {
    let program = script("read line; echo \"$1 $GREETING $(pwd) ${HOME-none}\" >&2; exit 0")
        .args(["sh", "argument"])
        .env("GREETING", "hello")
        .env_remove("HOME")
        .cwd("/");
    let client = Client::connect(program, Options::default().request_timeout(Duration::from_secs(20))).await.unwrap();
    let Err(Error::Disconnected(ended)) = client.list_models(ModelListParams::default()).await else {
        panic!("an end expected")
    };
    assert_eq!(ended.stderr, "argument hello / none\n");
}

#[tokio::test]
async fn a_program_that_neither_reads_nor_exits_is_killed() {
    let client = connect("exec sleep 600").await;
    // From here on the clock advances when every task waits.
    tokio::time::pause();
    let sending = async {
        let large = json!({ "text": "x".repeat(1 << 20) });
        client.with_timeout(None).call_json("mock/large", large).await
    };
    let closing = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.close().await
    };
    let (sent, ended) = tokio::join!(sending, closing);
    assert!(matches!(sent, Err(Error::Closed)), "{sent:?}");
    assert_eq!(ended.status.unwrap().signal(), Some(9));
}
