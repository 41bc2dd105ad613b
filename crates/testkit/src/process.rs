//! [`Process`]: the process of the program under test, killed when dropped.

use std::process::ExitStatus;

pub use rustix::process::Signal;
use tokio::process::{Child, Command};

use crate::{CapturedOutput, TIMEOUT};

pub struct Process {
    child: Child,
    stderr: CapturedOutput,
}

impl Process {
    /// Spawns it with stderr captured; the other pipes are as in the command.
    pub(crate) fn spawn(mut command: Command) -> Self {
        command.stderr(std::process::Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("cannot start the program under test, {:?}: {error}", command.as_std().get_program())
        });
        let stderr = CapturedOutput::of(child.stderr.take().expect("stderr is piped"));
        Self { child, stderr }
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Panics once the process has been waited for, as its id may be reused then.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the process has exited and has no id any more")
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(pid.expect("a process id is positive"), signal)
            .unwrap_or_else(|error| panic!("cannot send {signal:?} to the server: {error}"));
    }

    /// Waits for the exit of the process. Cancel-safe.
    pub async fn wait_exit(&mut self) -> ExitStatus {
        match tokio::time::timeout(TIMEOUT, self.child.wait()).await {
            Ok(status) => status.expect("a child can be waited for"),
            Err(_) => panic!("the server is still running after {TIMEOUT:?}; stderr: {}", self.stderr.tail()),
        }
    }

    pub fn stderr(&self) -> &CapturedOutput {
        &self.stderr
    }
}
