//! A program that speaks MCP on its stdin and stdout, one message per line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loomd_exec::{Command, Environment, Input, Output, Process, StartedProcess, Stdio};
use rmcp::model::ClientJsonRpcMessage;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::WireError;
use super::lines::{Line, Lines};
use super::message::Decoder;
use crate::config::StdioServer;
use crate::limits::{MAX_LOGGED_LINE, MAX_MESSAGE, MAX_UNSENT, STOPPING};

/// Variables of our environment that every program gets.
const PASSED_ON: [&str; 11] =
    ["HOME", "LOGNAME", "PATH", "SHELL", "USER", "__CF_USER_TEXT_ENCODING", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ"];

/// A running program. Killed with all it started when dropped.
pub(crate) struct StdioWire {
    process: Process,
    stdout: Output,
    /// `None` once the program is being stopped.
    outbox: Option<mpsc::Sender<Vec<u8>>>,
    lines: Lines,
    buffer: Vec<u8>,
    /// The program has ended; what it wrote before is still read.
    ended: bool,
    _writer: AbortOnDropHandle<()>,
    _stderr: Option<AbortOnDropHandle<()>>,
}

impl StdioWire {
    pub async fn start(name: &str, server: &StdioServer, ours: &Environment) -> loomd_exec::Result<Self> {
        let argv = std::iter::once(&server.command).chain(&server.args).cloned();
        let cwd = server.cwd.clone().map_or_else(std::env::current_dir, Ok);
        let cwd = cwd.unwrap_or_else(|_| PathBuf::from("/"));
        let command = Command::new(argv, absolute(&cwd), environment(server, ours));
        let StartedProcess { process, stdin, stdout, stderr } =
            Process::start(&command, Stdio::Pipes { stdin: true }).await?;
        let (outbox, unsent) = mpsc::channel(MAX_UNSENT);
        let writer = AbortOnDropHandle::new(tokio::spawn(write(stdin, unsent)));
        let name = name.to_owned();
        let stderr = stderr.map(|stderr| AbortOnDropHandle::new(tokio::spawn(log_stderr(stderr, name))));
        Ok(Self {
            process,
            stdout,
            outbox: Some(outbox),
            lines: Lines::new(MAX_MESSAGE),
            buffer: vec![0; 64 * 1024],
            ended: false,
            _writer: writer,
            _stderr: stderr,
        })
    }

    /// Queues a message for the program.
    pub fn send(&self, message: &ClientJsonRpcMessage) -> Result<(), WireError> {
        let mut line = serde_json::to_vec(message).map_err(|error| WireError::Failed(error.to_string()))?;
        line.push(b'\n');
        let outbox = self.outbox.as_ref().ok_or(WireError::Closed)?;
        outbox.try_send(line).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => WireError::Stuck,
            mpsc::error::TrySendError::Closed(_) => WireError::Closed,
        })
    }

    /// Reads some more. Returns false when the program has ended or closed its output. Cancel-safe.
    pub(super) async fn read(&mut self, decoder: &mut Decoder, server: &str) -> bool {
        let read = tokio::select! {
            biased;
            read = self.stdout.read(&mut self.buffer) => read,
            // Something that it started may hold its output open.
            _ = self.process.wait(), if !self.ended => {
                self.ended = true;
                return true;
            }
            () = tokio::time::sleep(std::time::Duration::from_millis(100)), if self.ended => return false,
        };
        let Some(length) = read.ok().filter(|length| *length > 0) else { return false };
        self.lines.push(&self.buffer[..length]);
        while let Some(line) = self.lines.next() {
            match line {
                Line::Whole(line) => decoder.decode(&line, None, server),
                Line::TooLong(id) => decoder.too_large(id, server),
            }
        }
        true
    }

    /// Ends the program: its input is closed and its group gets a SIGTERM, then a SIGKILL.
    pub async fn close(&mut self) {
        self.outbox = None;
        if let Some(group) = i32::try_from(self.process.pid()).ok().and_then(Pid::from_raw)
            && !self.ended
        {
            // An error means that the group is gone.
            let _ = kill_process_group(group, Signal::TERM);
        }
        let _ = tokio::time::timeout(STOPPING, self.process.wait()).await;
        self.process.kill();
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A few harmless variables, those that are named, and those that are set.
fn environment(server: &StdioServer, ours: &Environment) -> Environment {
    let names = PASSED_ON.into_iter().chain(server.env_vars.iter().map(String::as_str));
    let mut env: BTreeMap<String, String> =
        names.filter_map(|name| Some((name.to_owned(), ours.get(name)?.to_owned()))).collect();
    env.extend(server.env.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned())));
    Environment(env)
}

async fn write(stdin: Option<Input>, mut unsent: mpsc::Receiver<Vec<u8>>) {
    let Some(mut stdin) = stdin else { return };
    while let Some(line) = unsent.recv().await {
        if stdin.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// Logs what the program writes to stderr, line by line.
async fn log_stderr(mut stderr: Output, server: String) {
    let (mut lines, mut buffer) = (Lines::new(MAX_LOGGED_LINE), vec![0; 4096]);
    while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
        lines.push(&buffer[..length]);
        while let Some(line) = lines.next() {
            if let Line::Whole(line) = line {
                tracing::debug!(server, line = %String::from_utf8_lossy(&line), "stderr of an MCP server");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_a_clean_environment_with_what_is_named_and_set() {
        let ours: Environment =
            [("PATH", "/bin"), ("CODEX_HOME", "/h"), ("NAMED", "n"), ("SECRET", "s")].into_iter().collect();
        let server = StdioServer {
            command: "x".into(),
            args: Vec::new(),
            env: [("SET".to_owned(), "v".to_owned().into()), ("NAMED".to_owned(), "over".to_owned().into())].into(),
            env_vars: vec!["NAMED".into(), "UNSET".into()],
            cwd: None,
        };
        let expected: Environment = [("PATH", "/bin"), ("NAMED", "over"), ("SET", "v")].into_iter().collect();
        assert_eq!(environment(&server, &ours), expected);
    }
}
