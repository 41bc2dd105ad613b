//! The unix socket listener: owner only, one server at a time, removed at exit.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Stdio;

use loomd_testkit::{Frame, Home, Signal, Stream, WsConnection, WsServer};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio_tungstenite::client_async;

use crate::common::{exit_code, in_time, launch, loomd, ping, run, until};

fn socket(home: &Home) -> PathBuf {
    home.work().join("loomd.sock")
}

fn url(home: &Home) -> String {
    format!("unix://{}", socket(home).display())
}

async fn listening(home: &Home) -> WsServer {
    launch().listen(home, &url(home)).await
}

async fn assert_serves(server: &WsServer) {
    let client = server.connect().await;
    client.initialize().await;
    ping(&client).await;
}

#[tokio::test]
async fn it_serves_websockets_to_its_owner_only() {
    let home = Home::empty();
    let server = listening(&home).await;
    assert_serves(&server).await;
    assert_eq!(server.http("GET", "/readyz", &[]).await.status, 200);
    assert_eq!(server.upgrade("/", &[("Origin", "http://localhost")]).await.status, 403);
    let mode = std::fs::metadata(socket(&home)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(server.stdout().text(), "");
}

#[tokio::test]
async fn the_socket_is_removed_at_exit() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let home = Home::empty();
        let mut server = listening(&home).await;
        let client = server.connect().await;
        client.initialize().await;
        server.signal(signal);
        client.frame_where("close frame", Frame::is_close).await;
        assert_eq!(server.wait_exit().await.code(), Some(0), "{signal:?}");
        assert!(!socket(&home).exists(), "{signal:?}");
    }
}

#[tokio::test]
async fn a_stale_socket_is_replaced() {
    let home = Home::empty();
    drop(UnixListener::bind(socket(&home)).unwrap());
    assert!(socket(&home).exists());
    let mut server = listening(&home).await;
    assert_serves(&server).await;
    server.signal(Signal::KILL);
    server.wait_exit().await;
    assert!(socket(&home).exists());
    assert_serves(&listening(&home).await).await;
}

#[tokio::test]
async fn a_second_server_does_not_take_over_a_live_socket() {
    let home = Home::empty();
    let server = listening(&home).await;
    let ended = run(&home, &["app-server", "--listen", &url(&home)]).await;
    let expected = format!("error: {} is in use by another server\n", socket(&home).display());
    assert_eq!((ended.code, ended.stderr), (Some(1), expected));
    assert_serves(&server).await;
}

#[tokio::test]
async fn a_file_that_is_no_socket_is_not_replaced() {
    let home = Home::empty();
    std::fs::write(socket(&home), "precious").unwrap();
    let ended = run(&home, &["app-server", "--listen", &url(&home)]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.starts_with("error: "), "{}", ended.stderr);
    assert_eq!(std::fs::read_to_string(socket(&home)).unwrap(), "precious");
}

#[tokio::test]
async fn a_proxy_carries_a_websocket_over_stdio() {
    let home = Home::empty();
    let mut server = listening(&home).await;
    let mut proxy = proxy(&home, &["--sock", socket(&home).to_str().unwrap()]);
    let client = through(&mut proxy).await;
    client.initialize().await;
    ping(&client).await;
    server.signal(Signal::TERM);
    client.frame_where("close frame", Frame::is_close).await;
    assert_eq!(server.wait_exit().await.code(), Some(0));
    assert_eq!(exit_code(&mut proxy).await, Some(0), "the proxy ends with the server");
}

#[tokio::test]
async fn a_proxy_uses_the_default_socket_and_ends_with_its_client() {
    let home = Home::empty();
    let _server = loomd(&home).args(["app-server", "--listen", "unix://"]).stderr(Stdio::null()).spawn().unwrap();
    let socket = home.path().join("app-server-control/app-server-control.sock");
    until("default socket", async || UnixStream::connect(&socket).await.is_ok()).await;
    let mut proxy = proxy(&home, &[]);
    let client = through(&mut proxy).await;
    client.initialize().await;
    ping(&client).await;
    drop(client);
    assert_eq!(exit_code(&mut proxy).await, Some(0));
}

#[tokio::test]
async fn a_proxy_without_a_server_is_an_error() {
    let home = Home::empty();
    let path = socket(&home);
    let ended = run(&home, &["app-server", "proxy", "--sock", path.to_str().unwrap()]).await;
    let expected = format!("error: failed to connect to socket at {}", path.display());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.starts_with(&expected), "{}", ended.stderr);
}

fn proxy(home: &Home, args: &[&str]) -> Child {
    let mut command = loomd(home);
    command.args(["app-server", "proxy"]).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("loomd starts")
}

async fn through(proxy: &mut Child) -> WsConnection {
    let pipes = tokio::io::join(proxy.stdout.take().unwrap(), proxy.stdin.take().unwrap());
    let pipes: Box<dyn Stream> = Box::new(pipes);
    let (socket, _) =
        in_time("upgrade", client_async("ws://localhost/", pipes)).await.expect("the upgrade is accepted");
    WsConnection::over(socket)
}
