//! How much of the machine a confined command may take.

use std::fs;
use std::io;

use loomd_config::config_toml::CommandLimits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// What processes of a sandbox may take. `None`: as much as there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// How many processes and threads there may be at a time.
    pub processes: Option<u64>,
    /// How many bytes each process may allocate.
    pub memory: Option<u64>,
}

/// More than any build starts; a fork bomb stops here.
const PROCESSES: u64 = 4096;
/// The part of the machine's memory that one process gets: three of four.
const MEMORY: (u64, u64) = (3, 4);

/// Where a process namespace says how many numbers it has; kernels before 6.14 have one for all of them.
const PID_MAX: &str = "/proc/sys/kernel/pid_max";
/// The least that the kernel takes there.
const LEAST_PIDS: u64 = 301;

impl Default for ResourceLimits {
    fn default() -> Self {
        let total = rustix::system::sysinfo();
        let total = u64::from(total.mem_unit) * total.totalram;
        Self { processes: Some(PROCESSES), memory: Some(total / MEMORY.1 * MEMORY.0) }
    }
}

impl ResourceLimits {
    /// The limits that the configuration asks for, and the usual ones where it says nothing.
    pub fn configured(limits: Option<&CommandLimits>) -> Self {
        let usual = Self::default();
        let Some(limits) = limits else { return usual };
        let limit = |asked: Option<u64>, usual| asked.map_or(usual, |asked| Some(asked).filter(|asked| *asked > 0));
        let memory = limits.memory_mb.map(|megabytes| megabytes.saturating_mul(1 << 20));
        Self { processes: limit(limits.processes, usual.processes), memory: limit(memory, usual.memory) }
    }

    /// Applies to this process and all that it starts. `own_users`: this is a user namespace of its own, where only the
    /// processes in it count.
    pub(super) fn apply(self, own_users: bool) -> io::Result<()> {
        if own_users && let Some(processes) = self.processes {
            lower(Resource::Nproc, processes)?;
        }
        if let Some(memory) = self.memory {
            lower(Resource::Data, memory)?;
        }
        Ok(())
    }

    /// Root is under no limit of the kind above, so the numbers are made scarce. To be called in a process namespace of
    /// our own, while its switches can still be written to.
    pub(super) fn limit_numbers(self) {
        if let Some(processes) = self.processes
            && of_this_namespace()
        {
            let _ = fs::write(PID_MAX, processes.max(LEAST_PIDS).to_string());
        }
    }
}

/// Whether the switch is the namespace's own: where it is not, root would change the machine's.
fn of_this_namespace() -> bool {
    let release = rustix::system::uname();
    let mut parts = release.release().to_str().unwrap_or_default().split(['.', '-']);
    let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok()).unwrap_or(0);
    (number(), number()) >= (6, 14)
}

/// Never raises what is lower already.
fn lower(resource: Resource, most: u64) -> io::Result<()> {
    let now = getrlimit(resource);
    let most = |now: Option<u64>| Some(now.map_or(most, |now| now.min(most)));
    Ok(setrlimit(resource, Rlimit { current: most(now.current), maximum: most(now.maximum) })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_means_no_limit_and_nothing_the_usual_one() {
        let usual = ResourceLimits::default();
        let configured =
            |processes, memory_mb| ResourceLimits::configured(Some(&CommandLimits { processes, memory_mb }));
        assert_eq!(ResourceLimits::configured(None), usual);
        assert_eq!(configured(None, None), usual);
        assert_eq!(configured(Some(0), Some(0)), ResourceLimits { processes: None, memory: None });
        assert_eq!(configured(Some(9), Some(2)), ResourceLimits { processes: Some(9), memory: Some(2 << 20) });
    }
}
