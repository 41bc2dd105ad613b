//! A process that ends what we started when we are gone. The kernel tells our own children, but not theirs; so
//! this one is told every group that runs, and when it hears no more of us it ends the groups that are left.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::thread::sleep;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};

use super::launch::{Launch, Stack};
use super::stdio::nothing;
use crate::helper::{GUARD, THIS_PROGRAM, is_ready};
use crate::{Command, Environment};

/// How long programs have to end by themselves.
const GRACE: Duration = Duration::from_secs(1);

/// Our end: started with the first program, if there can be one.
#[derive(Debug, Default)]
pub(super) struct Guard {
    tell: Option<File>,
    tried: bool,
}

impl Guard {
    pub fn started(&mut self, group: Pid, stack: &mut Stack) {
        if !self.tried {
            self.tried = true;
            // Without one, what programs start may outlive us.
            let _ = self.start(stack);
        }
        self.say('+', group);
    }

    pub fn ended(&mut self, group: Pid) {
        self.say('-', group);
    }

    fn say(&mut self, what: char, group: Pid) {
        if let Some(tell) = &mut self.tell
            && writeln!(tell, "{what}{}", group.as_raw_pid()).is_err()
        {
            self.tell = None;
        }
    }

    fn start(&mut self, stack: &mut Stack) -> crate::Result<()> {
        if !is_ready() {
            return Ok(());
        }
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
        // A guard that does not listen must not hold us up.
        rustix::io::ioctl_fionbio(&ours, true).map_err(io::Error::from)?;
        let mut command = Command::new([THIS_PROGRAM], "/", Environment::default());
        command.arg0 = Some(GUARD.into());
        let launch = Launch::new(&command, [theirs, nothing()?, nothing()?], false)?;
        launch.start(stack)?;
        self.tell = Some(ours.into());
        Ok(())
    }
}

/// What the guard does.
pub(crate) fn guard() -> i32 {
    // Our end would come just when there is work to do.
    let _ = set_parent_process_death_signal(None);
    let mut running = BTreeSet::new();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let group = line.get(1..).and_then(|number| number.parse().ok());
        match (line.as_bytes().first(), group) {
            (Some(b'+'), Some(group)) => running.insert(group),
            (Some(b'-'), Some(group)) => running.remove(&group),
            _ => false,
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
