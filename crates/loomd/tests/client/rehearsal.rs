//! The integration tests of a client library (connect and list models, a thread and a simple turn) over every
//! transport, with the built-in rehearsal model. The reference has no such model; [`turns`](super::turns) covers the
//! same with a scripted one.

use loomd_client::protocol::{ModelListParams, ThreadItem, ThreadStartParams, TurnStatus};
use loomd_client::{Client, Endpoint, Options, Websocket};
use loomd_testkit::Home;

use crate::servers::{Server, in_process};

pub fn home() -> Home {
    let home = Home::empty().with("model_provider = \"rehearsal\"\nsandbox_mode = \"danger-full-access\"");
    // The server in this process has the environment of the test.
    let user = home.user().display().to_string();
    home.with(&format!("shell_environment_policy.set.HOME = {user:?}"))
}

async fn check(endpoint: impl Into<Endpoint>, home: &Home) {
    let client = Client::connect(endpoint, Options::default()).await.expect("a connection");
    let models = client.list_models(ModelListParams::default()).await.expect("a list of models");
    assert_eq!(models.data.iter().filter(|model| model.is_default).count(), 1, "{models:?}");

    let params = ThreadStartParams { cwd: Some(home.work().display().to_string()), ..Default::default() };
    let thread = client.start_thread(params).await.expect("a thread");
    let done = thread.run("run `echo hello world`; say There it is.").await.expect("a turn");
    assert_eq!((done.turn.status, done.agent_message.as_deref()), (TurnStatus::Completed, Some("There it is.")));
    let outputs: Vec<_> = done.items.iter().filter_map(output).collect();
    assert_eq!(outputs, ["hello world\n"], "{:?}", done.items);
    client.close().await;
}

fn output(item: &ThreadItem) -> Option<&str> {
    match item {
        ThreadItem::CommandExecution { aggregated_output, .. } => aggregated_output.as_deref(),
        _ => None,
    }
}

#[tokio::test]
async fn over_stdio() {
    let home = home();
    check(Server::loomd().program(&home), &home).await;
}

#[tokio::test]
async fn over_a_websocket_with_a_token() {
    let home = home();
    let token = home.write("token", "open sesame\n");
    let launch = Server::loomd().launch().args(["--ws-auth", "capability-token", "--ws-token-file"]).args([token]);
    let listener = launch.websocket(&home).await;
    let url = format!("ws://127.0.0.1:{}", listener.port());
    check(Websocket::new(url).bearer("open sesame"), &home).await;
}

#[tokio::test]
async fn over_a_unix_socket() {
    let home = home();
    let socket = home.path().join("socket");
    let _listener = Server::loomd().launch().listen(&home, &format!("unix://{}", socket.display())).await;
    check(Endpoint::unix(socket), &home).await;
}

#[tokio::test]
async fn in_the_same_process() {
    let home = home();
    check(in_process(&home), &home).await;
}
