//! The programs that one client runs with `command/exec`, by the process ids that it chose. The request that started a
//! program owns it; other requests of the same client reach it through [`Processes`].

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::Arc;

use loomd_exec::{Input, Size, StartedProcess, Terminal};
use parking_lot::{Mutex, MutexGuard};
use thiserror::Error;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, SetOnce};
use tokio_util::sync::CancellationToken;

/// The programs of one connection.
#[derive(Default)]
pub(crate) struct Processes {
    /// The parent of the tokens that stop each program.
    all: CancellationToken,
    named: Mutex<HashMap<String, Arc<RunningProcess>>>,
}

/// Why a program cannot be reached. The messages are those of the protocol.
#[derive(Debug, Error)]
pub(crate) enum ProcessError {
    #[error("duplicate active command/exec process id: {}", quoted(.0))]
    Duplicate(String),
    #[error("no active command/exec for process id {}", quoted(.0))]
    Unknown(String),
    #[error("command/exec {} is no longer running", quoted(.0))]
    Ended(String),
    #[error("stdin streaming is not enabled for this command/exec")]
    NoInput,
    #[error("stdin is already closed")]
    InputClosed,
    #[error("failed to resize PTY: {0}")]
    Resize(io::Error),
}

/// Returns the id as a JSON string.
fn quoted(id: &str) -> String {
    serde_json::Value::from(id).to_string()
}

impl Processes {
    /// Registers a program that is about to start. Without an id other requests cannot reach it.
    pub fn add(self: &Arc<Self>, id: Option<String>, takes_input: bool) -> Result<ProcessRegistration, ProcessError> {
        let input = Arc::new(AsyncMutex::new(None));
        // Held until the program has started, so that writes wait; the lock is not shared yet.
        let starting = Arc::clone(&input).try_lock_owned().ok();
        let (stop, ended) = (self.all.child_token(), CancellationToken::new());
        let running = Arc::new(RunningProcess { stop, ended, takes_input, input, terminal: SetOnce::new() });
        if let Some(id) = &id {
            match self.lock().entry(id.clone()) {
                Entry::Occupied(_) => return Err(ProcessError::Duplicate(id.clone())),
                Entry::Vacant(place) => place.insert(Arc::clone(&running)),
            };
        }
        Ok(ProcessRegistration { processes: Arc::clone(self), id, running, starting })
    }

    pub fn find(&self, id: &str) -> Result<Arc<RunningProcess>, ProcessError> {
        self.lock().get(id).cloned().ok_or_else(|| ProcessError::Unknown(id.into()))
    }

    /// Stops all programs.
    pub fn stop(&self) {
        self.all.cancel();
    }

    /// Stops the programs with an id. The others end with their requests.
    pub fn stop_named(&self) {
        for running in self.lock().values() {
            running.stop();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<RunningProcess>>> {
        self.named.lock()
    }
}

/// The registration of a program. Dropping it marks the program as ended and frees its id.
pub(crate) struct ProcessRegistration {
    processes: Arc<Processes>,
    id: Option<String>,
    running: Arc<RunningProcess>,
    starting: Option<OwnedMutexGuard<Option<Input>>>,
}

impl ProcessRegistration {
    /// Lets other requests reach the program.
    pub fn started(&mut self, started: &mut StartedProcess) {
        if let Some(mut input) = self.starting.take() {
            *input = started.stdin.take().filter(|_| self.running.takes_input);
        }
        _ = self.running.terminal.set(started.process.terminal().cloned());
    }

    /// Cancelled when the program is to end.
    pub fn stop(&self) -> &CancellationToken {
        &self.running.stop
    }
}

impl Drop for ProcessRegistration {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.processes.lock().remove(id);
        }
        self.running.ended.cancel();
    }
}

/// A program as other requests reach it.
pub(crate) struct RunningProcess {
    stop: CancellationToken,
    ended: CancellationToken,
    takes_input: bool,
    input: Arc<AsyncMutex<Option<Input>>>,
    /// Known once it has started.
    terminal: SetOnce<Option<Terminal>>,
}

impl RunningProcess {
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Writes after earlier writes, and closes the input if `close`. Waits for a program that does not read as long as
    /// it runs.
    pub async fn write(&self, id: &str, bytes: &[u8], close: bool) -> Result<(), ProcessError> {
        if !self.takes_input {
            return Err(ProcessError::NoInput);
        }
        let write = async {
            let mut place = self.input.lock().await;
            let Some(input) = place.as_mut() else {
                return if bytes.is_empty() && close { Ok(()) } else { Err(ProcessError::InputClosed) };
            };
            // The program may have closed its end.
            let written = input.write_all(bytes).await.map_err(|_| ProcessError::InputClosed);
            if (close || written.is_err())
                && let Some(input) = place.take()
            {
                _ = input.close().await;
            }
            written
        };
        self.while_running(id, write).await
    }

    pub async fn resize(&self, id: &str, size: Size) -> Result<(), ProcessError> {
        let resize = async {
            match self.terminal.wait().await {
                Some(terminal) => terminal.resize(size).map_err(ProcessError::Resize),
                None => Err(ProcessError::Resize(io::Error::other("process is not attached to a PTY"))),
            }
        };
        self.while_running(id, resize).await
    }

    async fn while_running<T>(
        &self,
        id: &str,
        work: impl Future<Output = Result<T, ProcessError>>,
    ) -> Result<T, ProcessError> {
        tokio::select! {
            biased;
            () = self.ended.cancelled() => Err(ProcessError::Ended(id.into())),
            done = work => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use loomd_exec::{Command, Environment, Process, Stdio};

    use super::*;

    fn cat() -> Command {
        Command::new(["cat"], "/", Environment::of_this_process())
    }

    #[tokio::test]
    async fn a_process_id_cannot_be_reused_before_its_program_has_ended() {
        let processes = Arc::new(Processes::default());
        let registered = processes.add(Some("p".into()), true).unwrap();
        let taken = processes.add(Some("p".into()), true).err().unwrap();
        assert_eq!(taken.to_string(), r#"duplicate active command/exec process id: "p""#);
        processes.add(None, false).unwrap();
        let running = processes.find("p").unwrap();
        drop(registered);
        assert_eq!(processes.find("p").err().unwrap().to_string(), r#"no active command/exec for process id "p""#);
        let late = running.write("p", b"x", false).await.unwrap_err();
        assert_eq!(late.to_string(), r#"command/exec "p" is no longer running"#);
        processes.add(Some("p".into()), true).unwrap();
    }

    #[tokio::test]
    async fn writes_wait_for_the_start_and_keep_their_order() {
        let processes = Arc::new(Processes::default());
        let mut registered = processes.add(Some("p".into()), true).unwrap();
        let running = processes.find("p").unwrap();
        let start = async {
            tokio::task::yield_now().await;
            let mut started = Process::start(&cat(), Stdio::Pipes { stdin: true }).await.unwrap();
            registered.started(&mut started);
            started
        };
        let (one, two, three, mut started) = tokio::join!(
            running.write("p", b"one ", false),
            running.write("p", b"two", true),
            running.write("p", b"three", false),
            start,
        );
        assert_eq!((one.is_ok(), two.is_ok()), (true, true));
        assert_eq!(three.unwrap_err().to_string(), "stdin is already closed");
        running.write("p", b"", true).await.unwrap();
        let mut buffer = [0; 64];
        let mut seen = Vec::new();
        while let length @ 1.. = started.stdout.read(&mut buffer).await.unwrap() {
            seen.extend_from_slice(&buffer[..length]);
        }
        assert_eq!(seen, b"one two");
    }

    #[tokio::test]
    async fn stopping_all_programs_stops_those_without_an_id() {
        let processes = Arc::new(Processes::default());
        let (named, unnamed) = (processes.add(Some("p".into()), false).unwrap(), processes.add(None, false).unwrap());
        let stopped = || (named.stop().is_cancelled(), unnamed.stop().is_cancelled());
        processes.stop_named();
        assert_eq!(stopped(), (true, false));
        processes.stop();
        assert_eq!(stopped(), (true, true));
    }
}
