//! A process that ends what we started when we are gone. The kernel tells our own children, but not theirs; so
//! this one is told every group that runs, and when it hears no more of us it ends the groups that are left.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::sleep;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};

use super::launch::{Failed, Launch, Stack};
use super::stdio::nothing;
use crate::helper::{GUARD, THIS_PROGRAM, is_ready};
use crate::{Command, Environment};

/// How long programs have to end by themselves.
const GRACE: Duration = Duration::from_secs(1);

/// Our end: started with the first program, if there can be one. What is said is a number: that of a group which
/// starts, which the group's leader says itself, or with a minus that of a group which ended.
#[derive(Debug, Default)]
pub(super) struct Guard {
    tell: Option<OwnedFd>,
    tried: bool,
}

impl Guard {
    /// Starts a program that the guard knows of. Without a guard, what the program starts may outlive us.
    pub fn start(&mut self, launch: &Launch, stack: &mut Stack) -> io::Result<(Pid, OwnedFd)> {
        if !self.tried {
            self.tried = true;
            let _ = self.set_up(stack);
        }
        launch.start(stack, self.tell.as_ref().map(AsFd::as_fd)).map_err(|Failed { group, error }| {
            group.into_iter().for_each(|group| self.ended(group));
            error
        })
    }

    pub fn ended(&self, group: Pid) {
        if let Some(tell) = &self.tell {
            // A guard that is gone or does not listen is no reason to stop.
            let _ = rustix::io::write(tell, &(-group.as_raw_pid()).to_ne_bytes());
        }
    }

    fn set_up(&mut self, stack: &mut Stack) -> crate::Result<()> {
        if !is_ready() {
            return Ok(());
        }
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
        // A guard that does not listen must not hold us up.
        rustix::io::ioctl_fionbio(&ours, true).map_err(io::Error::from)?;
        let mut command = Command::new([THIS_PROGRAM], "/", Environment::default());
        command.arg0 = Some(GUARD.into());
        let launch = Launch::new(&command, [theirs, nothing()?, nothing()?], false)?.outliving_us();
        launch.start(stack, None).map_err(|failed| failed.error)?;
        self.tell = Some(ours);
        Ok(())
    }
}

/// What the guard does.
pub(crate) fn guard() -> i32 {
    let mut running = BTreeSet::new();
    let mut said = [0; size_of::<i32>()];
    let mut us = io::stdin().lock();
    while us.read_exact(&mut said).is_ok() {
        match i32::from_ne_bytes(said) {
            ended if ended < 0 => running.remove(&-ended),
            started => running.insert(started),
        };
    }
    let groups: Vec<_> = running.into_iter().filter_map(Pid::from_raw).collect();
    let alive: Vec<_> = groups.iter().filter(|group| kill_process_group(**group, Signal::TERM).is_ok()).collect();
    if !alive.is_empty() {
        sleep(GRACE);
    }
    for group in alive {
        let _ = kill_process_group(*group, Signal::KILL);
    }
    0
}
