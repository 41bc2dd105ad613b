//! What happens to a command when the process that runs it dies.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

fn wait_for_line(path: &Path) -> String {
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => sleep(Duration::from_millis(5)),
        }
    }
}

#[test]
fn a_command_dies_with_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = format!("echo $$ > {}; exec sleep 100", file.display());
    let mut owner = Command::new(env!("CARGO_BIN_EXE_exec-fixture"))
        .args(["sh", "-c", &script])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let pid = wait_for_line(&file);
    assert!(alive(&pid));
    owner.kill().unwrap();
    owner.wait().unwrap();
    while alive(&pid) {
        sleep(Duration::from_millis(5));
    }
}
