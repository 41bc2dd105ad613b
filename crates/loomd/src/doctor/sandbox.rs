//! Checks what the sandbox enforces here, by running commands that must succeed and commands that must fail.

use std::fs;
use std::path::Path;

use anyhow::Result;
use loomd_exec::sandbox::{Report, Sandbox, Surroundings};
use loomd_exec::{Command, Environment, Limits, Outcome};
use loomd_protocol::{ReadOnlyAccess, SandboxPolicy};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Finding::{self, Fail, Pass, Warn};

pub async fn findings() -> Vec<Finding> {
    match attempts().await {
        Ok(findings) => findings,
        Err(error) => vec![Fail(format!("cannot test the sandbox: {error}"))],
    }
}

async fn attempts() -> Result<Vec<Finding>> {
    let place = tempfile::tempdir()?;
    let (work, outside) = (place.path().join("work"), place.path().join("outside"));
    fs::create_dir_all(work.join(".git"))?;
    fs::create_dir(&outside)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let write = |path: &Path| format!("echo x > {}", path.display());
    if !works(&work, &write(&work.join("file"))).await? {
        return Ok(vec![Fail(
            "no sandbox is available here; commands run only with --sandbox danger-full-access".to_owned(),
        )]);
    }
    let means = Report::make(None).await?;
    let mut findings = vec![
        Pass(format!("commands are sandboxed by {means}")),
        Pass("they run, and can write to the workspace".to_owned()),
    ];
    for (attempt, good, bad) in [
        (
            write(&outside.join("file")),
            "they cannot write outside the workspace",
            "they can write outside the workspace",
        ),
        (
            write(&work.join(".git/config")),
            "they cannot change .git and .codex in the workspace",
            "they can change .git and .codex in the workspace",
        ),
        (format!("exec 3<>/dev/tcp/127.0.0.1/{port}"), "they cannot reach the network", "they can reach the network"),
    ] {
        let stopped = !works(&work, &attempt).await?;
        findings.push(if stopped { Pass(good.to_owned()) } else { Warn(bad.to_owned()) });
    }
    Ok(findings)
}

/// Whether a script succeeds in a sandbox in which only `work` is writable.
async fn works(work: &Path, script: &str) -> Result<bool> {
    let policy = SandboxPolicy::WorkspaceWrite {
        writable_roots: Vec::new(),
        read_only_access: ReadOnlyAccess::FullAccess,
        network_access: false,
        exclude_tmpdir_env_var: true,
        exclude_slash_tmp: true,
    };
    let command = Command::new(["bash", "-c", script], work, Environment::of_this_process());
    let command = match Sandbox::new(&policy, Surroundings::new(work)) {
        Some(sandbox) => sandbox.wrap(&command, None)?,
        None => command,
    };
    let stop = CancellationToken::new();
    let finished = loomd_exec::run(&command, Limits::default(), &stop, |_, _| {}).await?;
    Ok(matches!(finished.outcome, Outcome::Ended(_)) && finished.outcome.exit_code() == 0)
}
