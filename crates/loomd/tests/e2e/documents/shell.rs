//! Runs shell commands of documents, with this program as `loomd` and the rehearsal as the model.

use std::process::Stdio;

use loomd_testkit::Home;
use tokio::process::Command;

use crate::common::{LOOMD, RunResult, output};

/// A home in which commands are not sandboxed.
pub fn home() -> Home {
    let home = Home::empty().with("sandbox_mode = \"danger-full-access\"");
    let programs = home.user().join("bin");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(LOOMD, programs.join("loomd")).unwrap();
    home
}

/// Runs a script in the home's working directory, until its first failure.
pub async fn run(home: &Home, script: &str) -> RunResult {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", script]).current_dir(home.work()).env_clear();
    command
        .env("PATH", format!("{}:{path}", home.user().join("bin").display()))
        .env("CODEX_HOME", home.path())
        .env("HOME", home.user())
        .env("SHELL", "/bin/bash")
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    output(&mut command).await
}
