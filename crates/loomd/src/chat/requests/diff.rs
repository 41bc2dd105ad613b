//! The changes in the working tree, as git shows them.

use anyhow::{Result, bail};
use loomd_client::Client;
use loomd_client::protocol::{CommandExecParams, CommandExecResponse, ReadOnlyAccess, SandboxPolicy};

use super::Outcome;

const TIMEOUT_MS: i64 = 20_000;

/// The most bytes of a diff.
const MAX_DIFF: usize = 1024 * 1024;

/// The diff of the working tree to the last commit, and the names of new files. Git runs in the server's read-only
/// sandbox, and runs no program that the repository names for diffs.
pub async fn diff(client: Client, cwd: String) -> Result<Outcome> {
    let changed = git(&client, &cwd, &["diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD"]).await?;
    let changed = if changed.exit_code == 0 {
        changed
    } else {
        // There may be no commit yet.
        git(&client, &cwd, &["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--cached"]).await?
    };
    if changed.exit_code != 0 {
        bail!("git diff: {}", changed.stderr.lines().next().unwrap_or("failed"));
    }
    let new = git(&client, &cwd, &["ls-files", "--others", "--exclude-standard"]).await?;
    let mut diff = changed.stdout;
    for file in new.stdout.lines() {
        diff += &format!("new file: {file}\n");
    }
    Ok(if diff.is_empty() { Outcome::Text("no changes\n".to_owned()) } else { Outcome::Diff(diff) })
}

async fn git(client: &Client, cwd: &str, args: &[&str]) -> Result<CommandExecResponse> {
    let program = ["git", "--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false"];
    let params = CommandExecParams {
        command: program.iter().chain(args).map(|word| (*word).to_owned()).collect(),
        output_bytes_cap: Some(MAX_DIFF),
        timeout_ms: Some(TIMEOUT_MS),
        cwd: Some(cwd.to_owned()),
        sandbox_policy: Some(SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false }),
        ..CommandExecParams::default()
    };
    Ok(client.exec_command(params).await?)
}
