//! Applies the limits of a sandbox to this process.

use std::fs;
use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::sandbox::ResourceLimits;

/// The limit of process ids of a namespace; kernels before 6.14 have one for all namespaces.
const PID_MAX: &str = "/proc/sys/kernel/pid_max";
/// The lowest value that the kernel accepts there.
const LEAST_PIDS: u64 = 301;

impl ResourceLimits {
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

    /// Limits the process ids instead, because `RLIMIT_NPROC` does not apply to root. To be called in a process
    /// namespace of our own, while its `/proc/sys` can still be written to.
    pub(super) fn limit_numbers(self) {
        if let Some(processes) = self.processes
            && of_this_namespace()
        {
            let _ = fs::write(PID_MAX, processes.max(LEAST_PIDS).to_string());
        }
    }
}

/// Whether the limit is that of this namespace: on older kernels, root would change that of the machine.
fn of_this_namespace() -> bool {
    let release = rustix::system::uname();
    let mut parts = release.release().to_str().unwrap_or_default().split(['.', '-']);
    let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok()).unwrap_or(0);
    (number(), number()) >= (6, 14)
}

/// Lowers a limit, and never raises it.
fn lower(resource: Resource, most: u64) -> io::Result<()> {
    let now = getrlimit(resource);
    let most = |now: Option<u64>| Some(now.map_or(most, |now| now.min(most)));
    Ok(setrlimit(resource, Rlimit { current: most(now.current), maximum: most(now.maximum) })?)
}
