//! A command whose only network is a set of loopback ports that the server serves.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use loomd_exec::sandbox::{LoopbackPorts, Sandbox, Surroundings};
use loomd_exec::{Command, Environment, Limits, run};
use loomd_protocol::{ReadOnlyAccess, SandboxPolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

const PORTS: &[u16] = &[3128, 8081];

fn sandbox() -> Sandbox {
    let policy = SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: true };
    Sandbox::new(&policy, Surroundings::new(Path::new("/"))).unwrap()
}

/// Every mechanism with a network namespace.
fn means() -> Vec<(&'static str, Sandbox)> {
    let mut means = vec![("built-in", sandbox())];
    match std::process::Command::new("bwrap").arg("--version").output() {
        Ok(_) => means.push(("bubblewrap", sandbox().with_bubblewrap_only())),
        Err(_) => eprintln!("skipped: bubblewrap is not installed here"),
    }
    means
}

async fn run_with_ports(sandbox: &Sandbox, script: &str) -> (String, LoopbackPorts) {
    let command = Command::new(["bash", "-c", script], "/", Environment::of_this_process());
    let helper = Path::new(env!("CARGO_BIN_EXE_exec-fixture"));
    let (command, ports) = sandbox.wrap_with_ports(&command, Some(helper), PORTS).unwrap();
    let cancel = CancellationToken::new();
    let serve = async {
        let listeners = ports.open().await.unwrap();
        loop {
            let ((mut stream, _), name) = tokio::select! {
                first = listeners[0].accept() => (first.unwrap(), "first"),
                second = listeners[1].accept() => (second.unwrap(), "second"),
            };
            let mut said = [0; 2];
            stream.read_exact(&mut said).await.unwrap();
            stream.write_all(format!("{name} {}\n", String::from_utf8_lossy(&said)).as_bytes()).await.unwrap();
        }
    };
    let done = tokio::select! {
        done = run(&command, Limits::default(), &cancel, |_, _| {}) => done.unwrap(),
        () = serve => unreachable!(),
    };
    (String::from_utf8_lossy(&done.aggregated()).into_owned(), ports)
}

#[tokio::test]
async fn a_command_reaches_the_listeners_of_its_loopback_ports() {
    for (name, sandbox) in means() {
        let script = "for p in 8081 3128; do exec 3<>/dev/tcp/127.0.0.1/$p; echo -n hi >&3; cat <&3; done; ls /proc/self/fd | wc -l";
        let (said, ports) = run_with_ports(&sandbox, script).await;
        // The standard streams, the last connection, and the folder that is listed.
        assert_eq!(said, "second hi\nfirst hi\n5\n", "{name}");
        ports.closed().await;
    }
}

#[tokio::test]
async fn a_command_with_loopback_ports_reaches_nothing_else() {
    let outside = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    outside.set_nonblocking(true).unwrap();
    let port = outside.local_addr().unwrap().port();
    let attempt = env!("CARGO_BIN_EXE_exec-fixture");
    for (name, sandbox) in means() {
        let script = format!(
            "(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null || echo no tcp
             (echo x > /dev/udp/127.0.0.1/{port}) 2>/dev/null || echo no udp
             for s in netlink packet raw vsock; do {attempt} --attempt socket $s 2>/dev/null || echo no $s; done
             perl -MSocket -e 'socket S, AF_UNIX, SOCK_STREAM, 0 or print \"no unix\\n\"'
             perl -MSocket -e 'socketpair A, B, AF_UNIX, SOCK_STREAM, 0 and print \"pairs\\n\"'
             perl -MSocket -e 'socket S, AF_INET, SOCK_STREAM, 0; bind S, pack_sockaddr_in(9, INADDR_LOOPBACK);
                listen S, 1; socket C, AF_INET, SOCK_STREAM, 0; connect C, getsockname S and print \"itself\\n\"' "
        );
        let (said, _) = run_with_ports(&sandbox, &script.replace("(9,", "(4999,")).await;
        let expected = "no tcp\nno udp\nno netlink\nno packet\nno raw\nno vsock\nno unix\npairs\nitself\n";
        assert_eq!(said, expected, "{name}");
        assert!(outside.accept().is_err(), "{name}");
    }
}

#[tokio::test]
async fn loopback_ports_are_refused_without_a_network_namespace() {
    let command = Command::new(["echo", "ran"], "/", Environment::of_this_process());
    let helper = Path::new(env!("CARGO_BIN_EXE_exec-fixture"));
    let sandbox = sandbox().with_landlock_only();
    let (command, ports) = sandbox.wrap_with_ports(&command, Some(helper), PORTS).unwrap();
    let done = run(&command, Limits::default(), &CancellationToken::new(), |_, _| {}).await.unwrap();
    let said = String::from_utf8_lossy(&done.aggregated()).into_owned();
    assert_eq!(
        (done.outcome.exit_code(), said.as_str()),
        (
            125,
            "sandbox: this sandbox cannot lead the command's connections through a proxy: Landlock makes no network of its \
             own\n"
        )
    );
    drop(command);
    assert!(ports.open().await.is_err());
}
