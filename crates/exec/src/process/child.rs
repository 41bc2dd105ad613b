//! A started program, and the one thread that starts them all. Programs are told to end when the thread
//! that started them does, so that thread must live as long as this process; and starting one may block.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions, WaitIdStatus, waitid};
use tokio::sync::oneshot;

use super::Exit;
use super::guard::Guard;
use super::kill::kill_all;
use super::launch::{Launch, Stack};

/// How often killed programs that have not ended yet are looked at again.
const REAP_INTERVAL: Duration = Duration::from_millis(20);

/// A program that leads its own process group. Dropped, the whole group is killed unless its leader has
/// ended; the leader stays a zombie until then, so that the group's number cannot mean anybody else.
#[derive(Debug)]
pub(super) struct Child {
    group: Pid,
    /// `None` once handed over for reaping.
    pidfd: Option<OwnedFd>,
    exit: Option<Exit>,
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

    /// Readable when the program has ended.
    pub fn pidfd(&self) -> io::Result<OwnedFd> {
        self.pidfd.as_ref().ok_or_else(gone)?.try_clone()
    }

    /// How the program ended, if it has.
    pub fn exit(&mut self) -> io::Result<Option<Exit>> {
        if self.exit.is_none() {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            let status = waitid(WaitId::PidFd(self.pidfd.as_ref().ok_or_else(gone)?.as_fd()), options)?;
            self.exit = status.as_ref().map(exit_of);
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
        if let Some(pidfd) = self.pidfd.take() {
            let _ = send(Job::Reap(self.group, pidfd));
        }
    }
}

fn exit_of(status: &WaitIdStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Signal(0),
    }
}

/// Whether the program has ended and its entry is gone.
pub(super) fn reap(pidfd: &OwnedFd) -> io::Result<bool> {
    let ended = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)?;
    Ok(ended.is_some())
}

enum Job {
    Start(Box<Launch>, oneshot::Sender<io::Result<Child>>),
    Reap(Pid, OwnedFd),
}

fn gone() -> io::Error {
    io::Error::other("the thread that starts programs is gone")
}

fn send(job: Job) -> io::Result<()> {
    static STARTER: LazyLock<Mutex<Option<mpsc::Sender<Job>>>> = LazyLock::new(Mutex::default);
    let mut starter = STARTER.lock().unwrap_or_else(PoisonError::into_inner);
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
    let mut ending: Vec<(Pid, OwnedFd)> = Vec::new();
    loop {
        let job = if ending.is_empty() {
            jobs.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            jobs.recv_timeout(REAP_INTERVAL)
        };
        match job {
            Ok(Job::Start(launch, reply)) => {
                let child = guard.start(&launch, &mut stack);
                let child = child.map(|(group, pidfd)| Child { group, pidfd: Some(pidfd), exit: None });
                // The other ends of the pipes must be closed here before anybody waits for their end.
                drop(launch);
                // Whoever asked may have gone; then the program is dropped, and killed.
                let _ = reply.send(child);
            }
            Ok(Job::Reap(group, pidfd)) => ending.push((group, pidfd)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        ending.retain(|(group, pidfd)| {
            let running = matches!(reap(pidfd), Ok(false));
            if !running {
                guard.ended(*group);
            }
            running
        });
    }
}
