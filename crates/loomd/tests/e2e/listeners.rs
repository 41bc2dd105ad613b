//! Listeners without authentication serve processes of the same user, except those in a sandbox of the server itself.

use std::os::unix::process::CommandExt;
use std::process::Stdio;

use loomd_testkit::{Home, Peer, WsServer};
use serde_json::{Value, json};

use crate::common::{LOOMD, in_time, launch, loomd, output, run};

/// A websocket handshake for a client made of a shell.
const UPGRADE: &str = r"printf 'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n'";

fn over_tcp(port: u16) -> String {
    format!("exec 3<>/dev/tcp/127.0.0.1/{port}; {UPGRADE} >&3; head -n 1 <&3")
}

async fn initialized(server: &WsServer) -> impl std::ops::Deref<Target = Peer> {
    let client = server.connect().await;
    client.initialize().await;
    client
}

/// The output of a script run by `command/exec` in a sandbox.
async fn run_in(client: &Peer, sandbox: Value, script: &str) -> String {
    let params = json!({ "command": ["bash", "-c", script], "sandboxPolicy": sandbox });
    let done = client.request("command/exec", params).await.expect("bash can be run");
    format!("{}{}", done["stdout"].as_str().unwrap(), done["stderr"].as_str().unwrap())
}

fn with_network() -> Value {
    json!({ "type": "workspaceWrite", "networkAccess": true })
}

fn unconfined() -> Value {
    json!({ "type": "dangerFullAccess" })
}

const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols";

#[tokio::test]
async fn a_sandboxed_command_with_network_cannot_connect_to_its_own_server() {
    let home = Home::empty();
    let server = launch().websocket(&home).await;
    let client = initialized(&server).await;
    let script = over_tcp(server.port());
    let refused = run_in(&client, with_network(), &script).await;
    assert_eq!(refused.trim_end(), "HTTP/1.1 403 Forbidden");
    let served = run_in(&client, unconfined(), &script).await;
    assert_eq!(served.trim_end(), SWITCHING, "the user's own commands may connect");
    // While a sandboxed command runs, other processes of the same user are served.
    let waiting = json!({ "command": ["sleep", "1000"], "processId": "p", "disableTimeout": true,
        "streamStdoutStderr": true, "sandboxPolicy": with_network() });
    client.send_request("command/exec", waiting).await;
    let other = initialized(&server).await;
    assert_eq!(run_in(&other, unconfined(), &script).await.trim_end(), SWITCHING);
}

#[tokio::test]
async fn a_sandboxed_command_cannot_hide_its_connection_between_processes() {
    let home = Home::empty();
    let server = launch().websocket(&home).await;
    let client = initialized(&server).await;
    // The descriptor is mostly in a message in flight when the server searches its owner.
    let script = format!(
        "python3 - <<'END'
import select, socket
a, b = socket.socketpair()
s = socket.socket()
s.connect(('127.0.0.1', {}))
s.send(b'GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\n\\r\\n')
while not select.select([s], [], [], 0)[0]:
    socket.send_fds(a, [b'x'], [s.fileno()])
    s.close()
    _, [fd], _, _ = socket.recv_fds(b, 1, 1)
    s = socket.socket(fileno=fd)
print(s.recv(4096).split(b'\\r\\n')[0].decode())
END",
        server.port()
    );
    let served = run_in(&client, unconfined(), &script).await;
    if !served.starts_with("HTTP/") {
        return eprintln!("skipped: no python that can pass descriptors: {served}");
    }
    let refused = run_in(&client, with_network(), &script).await;
    assert_eq!(refused.trim_end(), "HTTP/1.1 403 Forbidden");
}

#[tokio::test]
async fn a_sandboxed_command_cannot_connect_to_the_unix_socket_of_its_own_server() {
    let home = Home::empty();
    let socket = home.work().join("s");
    let server = launch().listen(&home, &format!("unix://{}", socket.display())).await;
    let client = initialized(&server).await;
    let script = format!(
        "mkfifo $$; exec 4<>$$; {UPGRADE} >&4; read -r line < <(exec {LOOMD} app-server proxy --sock {} <&4); echo \
         \"$line\"; kill $! 2>/dev/null; true",
        socket.display()
    );
    let refused = run_in(&client, with_network(), &script).await;
    assert!(refused.contains("403 Forbidden") || refused.contains("failed to connect"), "{refused}");
    assert_eq!(run_in(&client, unconfined(), &script).await.trim_end(), SWITCHING);
}

#[tokio::test]
async fn other_users_are_refused_on_the_loopback_without_the_flag() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can run a program as another user");
    }
    let home = Home::empty();
    for (flags, expected) in [(&[][..], "HTTP/1.1 403 Forbidden"), (&["--allow-unauthenticated"], SWITCHING)] {
        let server = launch().args(flags.iter().copied()).websocket(&home).await;
        let mut bash = std::process::Command::new("bash");
        bash.args(["-c", &over_tcp(server.port())]).current_dir("/").uid(65534).gid(65534).stdin(Stdio::null());
        let said = in_time("the end of bash", tokio::process::Command::from(bash).output()).await.unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap().trim_end(), expected, "{flags:?}");
    }
}

#[tokio::test]
async fn a_listener_beyond_the_loopback_needs_authentication_or_the_flag() {
    let home = Home::empty();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let ended = run(&home, &["app-server", "--listen", &format!("ws://{address}")]).await;
        let start = format!("error: refusing to listen on ws://{address} without authentication");
        assert!(ended.stderr.starts_with(&start) && ended.stderr.contains("`--allow-unauthenticated`"), "{ended:?}");
        assert_eq!(ended.code, Some(1));
    }
    let both = ["app-server", "--ws-auth", "capability-token", "--ws-token-sha256", "00", "--allow-unauthenticated"];
    let ended = output(loomd(&home).args(both)).await;
    assert_eq!(ended.stderr, "error: `--allow-unauthenticated` and `--ws-auth` exclude each other\n");
    let server = launch().args(["--allow-unauthenticated"]).listen(&home, "ws://0.0.0.0:0").await;
    initialized(&server).await;
}
