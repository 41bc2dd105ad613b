//! `--listen fd://`: a socket that a service manager passes.

use loomd_testkit::{Home, Launch, Signal, WsServer};

use crate::common::{LOOMD, ping, run};

/// Makes the socket of the last argument, a URL, and runs the rest with it, as systemd does.
const MANAGER: &str = r#"
import os, socket, sys
*command, url = sys.argv[1:]
if url.startswith("unix://"):
    passed = socket.socket(socket.AF_UNIX)
    passed.bind(url[len("unix://"):])
else:
    passed = socket.socket()
    passed.bind(("127.0.0.1", 0))
passed.listen()
os.dup2(passed.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(command[0], command + ["fd://"])
"#;

fn manager() -> Launch {
    Launch::new("python3").args(["-c", MANAGER, LOOMD, "app-server"])
}

async fn assert_serves(server: &WsServer) {
    let client = server.connect().await;
    client.initialize().await;
    ping(&client).await;
    assert_eq!(server.http("GET", "/readyz", &[]).await.status, 200);
}

#[tokio::test]
async fn a_passed_unix_socket_is_served_and_not_removed_at_exit() {
    let home = Home::empty();
    let mut server = manager().unix(&home).await;
    assert_serves(&server).await;
    let announced = server.stderr().text();
    let path = announced.split("unix://").nth(1).and_then(|rest| rest.lines().next()).unwrap().to_owned();
    server.signal(Signal::TERM);
    assert_eq!(server.wait_exit().await.code(), Some(0));
    assert!(std::path::Path::new(&path).exists(), "the socket belongs to the service manager");
}

#[tokio::test]
async fn a_passed_tcp_socket_is_served_with_and_without_a_token() {
    let home = Home::empty();
    assert_serves(&manager().websocket(&home).await).await;
    let token = home.write("token", "open sesame\n");
    let guarded = manager().args(["--ws-auth", "capability-token", "--ws-token-file"]).args([token]);
    let server = guarded.websocket(&home).await;
    assert_eq!(server.upgrade("/", &[]).await.status, 401);
    assert_eq!(server.upgrade("/", &[("Authorization", "Bearer open sesame")]).await.status, 101);
}

#[tokio::test]
async fn without_a_passed_socket_the_server_says_so() {
    let ran = run(&Home::empty(), &["app-server", "--listen", "fd://"]).await;
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("no socket was passed to this process"), "{}", ran.stderr);
}
