//! Processes in sandboxes of this process are recognised, under every mechanism of confinement.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use loomd_exec::sandbox::{Sandbox, Surroundings};
use loomd_exec::{Command, Environment, Process, SocketHolder, Stdio, is_in_own_sandbox, socket_holder};
use loomd_protocol::SandboxPolicy;

/// A command that runs until it is dropped, and the id of its innermost process.
async fn running(sandbox: Option<Sandbox>, mark: &str) -> (Process, u32) {
    let environment = Environment::from_iter([("PATH", "/usr/bin:/bin")]);
    // The shell is not replaced, so the process in question is not the one that was started.
    let command = Command::new(["sh", "-c", &format!("sleep 1000{mark}; true")], "/", environment);
    let command = match sandbox {
        Some(sandbox) => sandbox.wrap(&command, Some(Path::new(env!("CARGO_BIN_EXE_exec-fixture")))).unwrap(),
        None => command,
    };
    let mut process = Process::start(&command, Stdio::Pipes { stdin: false }).await.unwrap().process;
    let wanted = format!("sleep\0{}\0", format_args!("1000{mark}"));
    loop {
        let found = fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            (fs::read_to_string(entry.path().join("cmdline")).ok()? == wanted).then_some(pid)
        });
        if let Some(pid) = found {
            return (process, pid);
        }
        tokio::select! {
            ended = process.wait() => panic!("it ended before it was found: {ended:?}"),
            () = tokio::time::sleep(std::time::Duration::from_millis(5)) => {}
        }
    }
}

fn read_only() -> Sandbox {
    let policy = SandboxPolicy::ReadOnly { access: Default::default(), network_access: true };
    Sandbox::new(&policy, Surroundings::new(Path::new("/"))).unwrap()
}

#[tokio::test]
async fn a_sandboxed_process_is_recognised_under_every_mechanism() {
    let (_plain, pid) = running(None, ".001").await;
    assert!(!is_in_own_sandbox(pid).unwrap());
    let (_best, pid) = running(Some(read_only()), ".002").await;
    assert!(is_in_own_sandbox(pid).unwrap());
    if Path::new("/usr/bin/bwrap").exists() {
        let (_bubblewrap, pid) = running(Some(read_only().with_bubblewrap_only()), ".003").await;
        assert!(is_in_own_sandbox(pid).unwrap());
    }
    if fs::read_to_string("/sys/kernel/security/lsm").is_ok_and(|list| list.contains("landlock")) {
        let (_landlock, pid) = running(Some(read_only().with_landlock_only()), ".004").await;
        assert!(is_in_own_sandbox(pid).unwrap());
    }
}

#[tokio::test]
async fn a_socket_of_the_server_is_not_attributed_to_a_sandbox() {
    let (_running, _) = running(Some(read_only()), ".005").await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let inode = fs::metadata(format!("/proc/self/fd/{}", client.as_raw_fd())).unwrap().ino();
    assert_eq!(socket_holder(inode), SocketHolder::Other);
    drop(client);
    assert_eq!(socket_holder(inode), SocketHolder::Unknown);
}
