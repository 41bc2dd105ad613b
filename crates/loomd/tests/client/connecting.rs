//! Connecting over every transport.

use loomd_client::protocol::{ServerNotification, ThreadListParams, ThreadStartParams};
use loomd_client::{Client, ConnectError, Endpoint, Error, Options, Program, Websocket};
use loomd_testkit::{Home, Signal, Tls};

use crate::servers::{Server, in_process, on_each_server};

on_each_server! {
    a_spawned_program_ends_with_the_client
    a_program_that_fails_to_start_reports_stderr
    a_websocket_connects
    a_websocket_needs_its_token
    wss_connects_only_with_a_trusted_certificate
    the_end_of_a_listener_disconnects_with_a_reason
    configuration_warnings_are_the_first_events
}

/// Connects and makes requests, whatever the transport.
async fn check(endpoint: impl Into<Endpoint>) -> Client {
    let client = Client::connect(endpoint, Options::new("check", "1.0")).await.expect("a connection");
    assert!(client.server().user_agent.contains("(check; 1.0)"), "{}", client.server().user_agent);
    let thread = client.start_thread(ThreadStartParams::default()).await.expect("a thread");
    let loaded = client.thread_loaded_list(Default::default()).await.expect("a list");
    assert_eq!(loaded.data, [thread.id()]);
    client
}

async fn a_spawned_program_ends_with_the_client(server: Server) {
    let home = Home::empty();
    let client = check(server.program(&home)).await;
    let ended = client.close().await;
    assert_eq!(ended.status.unwrap().code(), Some(0), "{ended}");
}

async fn a_program_that_fails_to_start_reports_stderr(server: Server) {
    let home = Home::empty();
    let program: Program = server.program(&home).args(["--listen", "http://x"]);
    let error = Client::connect(program, Options::default()).await.err().unwrap();
    let Error::Disconnected(ended) = error else { panic!("{error:?}") };
    assert_eq!(ended.status.unwrap().code(), Some(2));
    assert!(ended.stderr.contains("unsupported --listen URL"), "{ended}");
}

async fn a_websocket_connects(server: Server) {
    let home = Home::empty();
    let listener = server.launch().websocket(&home).await;
    let client = check(Endpoint::websocket(format!("ws://127.0.0.1:{}", listener.port()))).await;
    client.close().await;
    let error = client.list_threads(ThreadListParams::default()).await.unwrap_err();
    assert!(matches!(error, Error::Closed), "{error}");
}

async fn a_websocket_needs_its_token(server: Server) {
    let home = Home::empty();
    let file = home.write("token", "open sesame\n");
    let launch = server.launch().args(["--ws-auth", "capability-token", "--ws-token-file"]).args([file]);
    let listener = launch.websocket(&home).await;
    let url = format!("ws://127.0.0.1:{}", listener.port());
    check(Websocket::new(&url).bearer("open sesame")).await;
    for (endpoint, body) in [
        (Websocket::new(&url), "missing websocket bearer token"),
        (Websocket::new(&url).bearer("abracadabra"), "invalid websocket bearer token"),
    ] {
        let error = Client::connect(endpoint, Options::default()).await.err().unwrap();
        let Error::Connect { source: ConnectError::Refused { status, body: given }, .. } = error else {
            panic!("{error:?}")
        };
        assert_eq!((status, given.as_str()), (401, body));
    }
}

async fn wss_connects_only_with_a_trusted_certificate(server: Server) {
    let home = Home::empty();
    let listener = server.launch().websocket(&home).await;
    let tls = Tls::start(([127, 0, 0, 1], listener.port()).into()).await;
    let endpoint = Websocket::new(format!("wss://localhost:{}", tls.port()));
    check(endpoint.clone().root_certificate(Tls::CERTIFICATE)).await;

    let by_address = Websocket::new(format!("wss://127.0.0.1:{}", tls.port())).root_certificate(Tls::CERTIFICATE);
    for (endpoint, words) in [
        (endpoint.clone(), "invalid peer certificate"),
        (by_address, "certificate not valid for name"),
        (endpoint.root_certificate("no certificate"), "cannot use a root certificate: no usable certificate"),
    ] {
        let error = Client::connect(endpoint, Options::default()).await.err().unwrap();
        assert!(error.to_string().contains(words), "{error}");
    }
}

async fn the_end_of_a_listener_disconnects_with_a_reason(server: Server) {
    let home = Home::empty();
    let mut listener = server.launch().websocket(&home).await;
    let endpoint = Endpoint::websocket(format!("ws://127.0.0.1:{}", listener.port()));
    let (client, mut events) = Client::open(endpoint, Options::default()).await.unwrap();
    listener.signal(Signal::KILL);
    listener.wait_exit().await;
    let error = loop {
        match events.next().await {
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => panic!("the reason is told"),
        }
    };
    assert!(matches!(error, Error::Disconnected(_)), "{error}");
    let error = client.list_threads(ThreadListParams::default()).await.unwrap_err();
    assert!(matches!(error, Error::Disconnected(_)), "{error}");
}

async fn configuration_warnings_are_the_first_events(server: Server) {
    let home = Home::empty();
    home.write("config.toml", "approval_policy = \"bogus\"");
    let (_client, mut events) = Client::open(server.program(&home), Options::default()).await.unwrap();
    let first = events.next().await.unwrap().unwrap();
    let Some(ServerNotification::ConfigWarning(warning)) = first.notification() else { panic!("{first:?}") };
    assert_eq!(warning.summary, "Invalid configuration; using defaults.");
}

#[tokio::test]
async fn a_unix_socket_connects() {
    let home = Home::empty();
    let socket = home.path().join("socket");
    let _listener = Server::loomd().launch().listen(&home, &format!("unix://{}", socket.display())).await;
    check(Endpoint::unix(socket)).await;
}

#[tokio::test]
async fn an_in_process_server_serves_several_clients() {
    let home = Home::empty();
    let endpoint = in_process(&home);
    let client = check(endpoint.clone()).await;
    // Each client has a connection of its own to the same server.
    let other = Client::connect(endpoint, Options::default()).await.unwrap();
    assert_eq!(other.thread_loaded_list(Default::default()).await.unwrap().data.len(), 1);
    client.close().await;
    assert_eq!(other.thread_loaded_list(Default::default()).await.unwrap().data.len(), 1);
}
