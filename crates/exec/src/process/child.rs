//! A started program, and the one thread that starts them all. The parent-death signal of a program is tied to the
//! thread that started it, so that thread lives as long as this process; and starting a program may block.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, WaitIdStatus};
use tokio::sync::oneshot;

use super::Exit;
use super::guard::Guard;
use super::kill::kill_all;
use super::launch::Launch;
use super::platform::{ExitHandle, Stack};

/// How often killed programs that have not ended yet are polled.
const REAP_INTERVAL: Duration = Duration::from_millis(20);

/// A program that leads its own process group. Dropped, the whole group is killed unless its leader has
/// ended; the leader stays a zombie until then, so that the group id is not reused.
#[derive(Debug)]
pub(super) struct Child {
    group: Pid,
    /// `None` once handed over for reaping.
    handle: Option<ExitHandle>,
    exit: Option<Exit>,
    /// `None` once it is known that the program has ended.
    running: Option<RunningProgram>,
}

/// How many programs are running.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Counts a program as running until it is dropped.
#[derive(Debug)]
struct RunningProgram(());

impl RunningProgram {
    fn begin() -> Self {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many programs of this process are running, commands and servers alike. One that has ended counts until that was
/// noticed.
pub fn running_programs() -> usize {
    RUNNING.load(Ordering::Relaxed)
}

pub(super) async fn start(launch: Launch) -> io::Result<Child> {
    let (reply, started) = oneshot::channel();
    send(Job::Start(Box::new(launch), reply))?;
    started.await.map_err(|_| gone())?
}

impl Child {
    pub fn pid(&self) -> u32 {
        self.group.as_raw_nonzero().get().unsigned_abs()
    }

    /// A descriptor that is readable when the program has ended.
    pub fn readable(&self) -> io::Result<OwnedFd> {
        self.handle.as_ref().ok_or_else(gone)?.readable()
    }

    /// How the program ended, if it has.
    pub fn exit(&mut self) -> io::Result<Option<Exit>> {
        if self.exit.is_none() {
            self.exit = self.handle.as_ref().ok_or_else(gone)?.exit()?;
        }
        if self.exit.is_some() {
            self.running = None;
        }
        Ok(self.exit)
    }

    pub fn kill(&self) {
        kill_all(self.group);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !matches!(self.exit(), Ok(Some(_))) {
            self.kill();
        }
        if let Some(handle) = self.handle.take() {
            let _ = send(Job::Reap(self.group, handle));
        }
    }
}

pub(super) fn exit_of(status: &WaitIdStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Signal(0),
    }
}

enum Job {
    Start(Box<Launch>, oneshot::Sender<io::Result<Child>>),
    Reap(Pid, ExitHandle),
}

fn gone() -> io::Error {
    io::Error::other("the thread that starts programs is gone")
}

fn send(job: Job) -> io::Result<()> {
    static STARTER: Mutex<Option<mpsc::Sender<Job>>> = Mutex::new(None);
    let mut starter = STARTER.lock();
    let sender = match &*starter {
        Some(sender) => sender,
        None => {
            let (sender, jobs) = mpsc::channel();
            thread::Builder::new().name("start-programs".into()).spawn(move || serve(&jobs))?;
            starter.insert(sender)
        }
    };
    sender.send(job).map_err(|_| gone())
}

fn serve(jobs: &mpsc::Receiver<Job>) {
    let mut stack = Stack::new();
    let mut guard = Guard::default();
    let mut ending: Vec<(Pid, ExitHandle)> = Vec::new();
    loop {
        let job = if ending.is_empty() {
            jobs.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            jobs.recv_timeout(REAP_INTERVAL)
        };
        match job {
            Ok(Job::Start(launch, reply)) => {
                let child = guard.start(&launch, &mut stack);
                let child = child.map(|(group, handle)| Child {
                    group,
                    handle: Some(handle),
                    exit: None,
                    running: Some(RunningProgram::begin()),
                });
                // The child's pipe ends must be closed here before a caller waits for end of file.
                drop(launch);
                // The caller may have been dropped; then the program is dropped, and killed.
                let _ = reply.send(child);
            }
            Ok(Job::Reap(group, handle)) => ending.push((group, handle)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        ending.retain(|(group, handle)| {
            let running = matches!(handle.reap(), Ok(false));
            if !running {
                guard.ended(*group);
            }
            running
        });
    }
}
