//! Asking the git program, within limits.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

/// How long git may take for one answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer that is taken. A difference of this size is of no use to anybody.
const MAX_ANSWER: u64 = 64 << 20;

/// Its standard output when it succeeds.
pub(crate) async fn ask(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = run(folder, arguments).await?;
    output.status.success().then_some(())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The first line of its answer, if there is something on it.
pub(crate) async fn ask_line(folder: &Path, arguments: &[&str]) -> Option<String> {
    let answer = ask(folder, arguments).await?;
    let line = answer.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// `None` when it cannot be run, takes too long or says too much.
pub(crate) async fn run(folder: &Path, arguments: &[&str]) -> Option<Output> {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // Looking must not get in the way of the user's own git.
    git.env("GIT_OPTIONAL_LOCKS", "0").kill_on_drop(true);
    let mut child = git.spawn().ok()?;
    let stdout = child.stdout.take()?;
    timeout(PATIENCE, async {
        let stdout = read(stdout).await?;
        Some(Output { status: child.wait().await.ok()?, stdout, stderr: Vec::new() })
    })
    .await
    .ok()?
}

async fn read(source: impl AsyncRead + Unpin) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MAX_ANSWER + 1).read_to_end(&mut bytes).await.ok()?;
    (bytes.len() as u64 <= MAX_ANSWER).then_some(bytes)
}
