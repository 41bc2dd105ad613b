//! Bearer tokens that a program of the user prints. A token is cached, for all threads of the provider.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Instant;

use loomd_config::config_toml::ProviderAuth;
use loomd_protocol::Secret;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Mutex;

use super::{Bearer, BoxFuture, Credentials};
use crate::ModelError;

/// How much of the program's output is read. Tokens have a few kilobytes.
const MAX_OUTPUT: u64 = 64 * 1024;

pub(crate) struct CommandCredentials {
    config: ProviderAuth,
    last: Mutex<Option<(Bearer, Instant)>>,
}

impl CommandCredentials {
    pub fn new(config: ProviderAuth) -> Self {
        Self { config, last: Mutex::new(None) }
    }

    /// Returns the cached token if `usable` accepts it, else runs the program. Holds the lock meanwhile, so concurrent
    /// callers share one run.
    async fn token(&self, usable: impl Fn(&Bearer, Instant) -> bool) -> Result<Bearer, ModelError> {
        let mut last = self.last.lock().await;
        if let Some((bearer, since)) = &*last
            && usable(bearer, *since)
        {
            return Ok(bearer.clone());
        }
        let bearer = self.run().await.map_err(|problem| {
            ModelError::Unauthorized(format!("provider auth command `{}` {problem}", self.config.command))
        })?;
        *last = Some((bearer.clone(), Instant::now()));
        Ok(bearer)
    }

    async fn run(&self) -> Result<Bearer, String> {
        let timeout = self.config.timeout();
        let program = self.program();
        let output = match tokio::time::timeout(timeout, run(&self.config, &program)).await {
            Err(_) => return Err(format!("timed out after {} ms", timeout.as_millis())),
            Ok(Err(error)) => return Err(format!("failed to start: {error}")),
            Ok(Ok(output)) => output,
        };
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let stderr = stderr.trim();
            let stderr = if stderr.is_empty() { String::new() } else { format!(": {stderr}") };
            return Err(format!("exited with status {}{stderr}", output.status));
        }
        let token = String::from_utf8(output.stdout).map_err(|_| "wrote non-UTF-8 data to stdout")?;
        match token.trim() {
            "" => Err("produced an empty token".into()),
            token => Ok(Bearer::key(Secret::from(token.to_owned()))),
        }
    }

    /// A relative path with a directory is resolved against the program's working directory.
    fn program(&self) -> PathBuf {
        let program = Path::new(&self.config.command);
        match &self.config.cwd {
            Some(cwd) if program.is_relative() && program.components().count() > 1 => cwd.join(program),
            _ => program.into(),
        }
    }
}

impl Credentials for CommandCredentials {
    fn bearer(&self) -> BoxFuture<'_, Result<Option<Bearer>, ModelError>> {
        let fresh = |_: &Bearer, since: Instant| since.elapsed() < self.config.refresh_interval();
        Box::pin(async move { self.token(fresh).await.map(Some) })
    }

    fn recover<'a>(&'a self, refused: &'a Bearer, refusals: u32) -> BoxFuture<'a, Result<bool, ModelError>> {
        Box::pin(async move {
            if refusals > 1 {
                return Ok(false);
            }
            // Another thread may have refreshed the token after the same 401.
            self.token(|bearer, _| bearer != refused).await?;
            Ok(true)
        })
    }
}

/// Runs the program. Dropping the future kills it.
async fn run(config: &ProviderAuth, program: &Path) -> std::io::Result<Output> {
    let mut command = tokio::process::Command::new(program);
    command.args(&config.args).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(cwd) = &config.cwd {
        command.current_dir(cwd);
    }
    let mut child = command.spawn()?;
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    let (stdout, stderr, status) = tokio::join!(stdout, stderr, child.wait());
    Ok(Output { status: status?, stdout, stderr })
}

async fn read(pipe: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // An unreadable pipe yields an empty token, which is reported as such.
        let _ = pipe.take(MAX_OUTPUT).read_to_end(&mut bytes).await;
    }
    bytes
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn command(script: &str) -> CommandCredentials {
        CommandCredentials::new(ProviderAuth {
            command: "sh".into(),
            args: vec!["-c".into(), script.into()],
            timeout_ms: Some(20_000),
            refresh_interval_ms: None,
            cwd: None,
        })
    }

    fn key(token: &str) -> Bearer {
        Bearer::key(Secret::from(token.to_owned()))
    }

    #[tokio::test]
    async fn a_token_is_trimmed_and_cached_until_it_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let runs = home.path().join("runs");
        let command = command(&format!("echo x >> {0}; echo \"  token-$(wc -l < {0} | tr -d ' ')  \"", runs.display()));
        for _ in 0..2 {
            assert_eq!(command.bearer().await, Ok(Some(key("token-1"))));
        }
        assert_eq!(command.recover(&key("token-0"), 1).await, Ok(true));
        assert_eq!(command.bearer().await, Ok(Some(key("token-1"))), "another caller has run it since");
        assert_eq!(command.recover(&key("token-1"), 1).await, Ok(true));
        assert_eq!(command.bearer().await, Ok(Some(key("token-2"))));
        assert_eq!(command.recover(&key("token-2"), 2).await, Ok(false));
    }

    #[tokio::test]
    async fn a_failed_command_is_reported_with_its_cause() {
        let check = async |command: CommandCredentials, expected: &str| {
            let message = command.bearer().await.unwrap_err().to_string();
            assert_eq!(message, format!("provider auth command `{}` {expected}", command.config.command));
        };
        check(command("echo no >&2; exit 3"), "exited with status exit status: 3: no").await;
        check(command("true"), "produced an empty token").await;
        check(command("printf '\\377'"), "wrote non-UTF-8 data to stdout").await;
        let mut slow = command("sleep 20");
        slow.config.timeout_ms = Some(1);
        check(slow, "timed out after 1 ms").await;
        let mut missing = command("");
        missing.config.command = "/nowhere/at-all".into();
        check(missing, "failed to start: No such file or directory (os error 2)").await;
    }

    #[test]
    fn a_relative_program_is_resolved_against_the_working_directory() {
        let mut command = command("");
        command.config.cwd = loomd_protocol::AbsolutePathBuf::new("/home/x");
        for (program, expected) in [("./tok.sh", "/home/x/./tok.sh"), ("tok", "tok"), ("/bin/tok", "/bin/tok")] {
            command.config.command = program.into();
            assert_eq!(command.program(), Path::new(expected));
        }
    }
}
