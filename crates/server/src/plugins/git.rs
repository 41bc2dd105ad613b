//! Calls of the git program that fetch repositories, and folders that they are fetched into.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loomd_exec::{Command, Environment, Limits, Outcome};
use tokio_util::sync::CancellationToken;

/// For each call.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Of the text that git writes about a failure.
const MAX_DETAIL: usize = 2000;

/// Why a call of git failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum GitFailure {
    #[error("git {command} failed with status {status}: {detail}")]
    Status { command: String, status: i32, detail: String },
    #[error("git {command} did not end in time")]
    Timeout { command: String },
    #[error("cannot run git: {0}")]
    NotRun(String),
}

/// Runs git without prompts and hooks, and returns its output. Transports that run other programs are refused.
pub(super) async fn run(folder: &Path, arguments: &[&str]) -> Result<String, GitFailure> {
    let mut environment = Environment::of_this_process();
    for (name, value) in [("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0"), ("GIT_ASKPASS", "true")] {
        environment.set(name, value);
    }
    let options = ["git", "-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never"];
    let argv = options.iter().chain(arguments).copied();
    let command = Command::new(argv, folder, environment);
    let limits = Limits { timeout: Some(TIMEOUT), retained: 64 * 1024 };
    let finished = loomd_exec::run(&command, limits, &CancellationToken::new(), |_, _| {}).await;
    let finished = finished.map_err(|error| GitFailure::NotRun(error.to_string()))?;
    let command = name_of(arguments).to_owned();
    match finished.outcome {
        Outcome::Ended(exit) if exit.code() == 0 => Ok(String::from_utf8_lossy(&finished.stdout).into_owned()),
        Outcome::Ended(exit) => {
            let text = String::from_utf8_lossy(&finished.stderr);
            // Where it was fetched to means nothing to the user.
            let text = text.trim().replace(&*folder.to_string_lossy(), ".");
            let detail = text[..text.floor_char_boundary(MAX_DETAIL)].to_owned();
            Err(GitFailure::Status { command, status: exit.code(), detail })
        }
        _ => Err(GitFailure::Timeout { command }),
    }
}

/// The first argument that is no option of git itself.
fn name_of<'a>(arguments: &[&'a str]) -> &'a str {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match *argument {
            "-c" => _ = rest.next(),
            name => return name,
        }
    }
    ""
}

/// A folder that is removed with what is left in it.
pub(super) struct Staging(pub PathBuf);

impl Staging {
    pub fn remove(&self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.remove();
    }
}
