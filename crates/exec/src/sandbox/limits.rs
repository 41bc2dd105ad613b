//! The resource limits of confined commands.

use loomd_config::config_toml::CommandLimits;
use serde::{Deserialize, Serialize};

/// The resources of the processes of a sandbox. `None`: no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// The most processes and threads at a time.
    pub processes: Option<u64>,
    /// The most bytes that each process may allocate.
    pub memory: Option<u64>,
}

/// The default limit of processes: more than builds start, and a bound for fork bombs.
const PROCESSES: u64 = 4096;
/// The part of the machine's memory that one process gets: three of four.
const MEMORY: (u64, u64) = (3, 4);

impl Default for ResourceLimits {
    fn default() -> Self {
        let memory = machine_memory().map(|total| total / MEMORY.1 * MEMORY.0);
        Self { processes: Some(PROCESSES), memory }
    }
}

impl ResourceLimits {
    /// The configured limits, with defaults for those that are not configured.
    pub fn configured(limits: Option<&CommandLimits>) -> Self {
        let usual = Self::default();
        let Some(limits) = limits else { return usual };
        let limit = |asked: Option<u64>, usual| asked.map_or(usual, |asked| Some(asked).filter(|asked| *asked > 0));
        let memory = limits.memory_mb.map(|megabytes| megabytes.saturating_mul(1 << 20));
        Self { processes: limit(limits.processes, usual.processes), memory: limit(memory, usual.memory) }
    }
}

/// The memory of the machine in bytes; `None` where limits of it are not enforced.
#[cfg(target_os = "linux")]
fn machine_memory() -> Option<u64> {
    let total = rustix::system::sysinfo();
    Some(u64::from(total.mem_unit) * total.totalram)
}

#[cfg(not(target_os = "linux"))]
fn machine_memory() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_zero_is_none_and_a_missing_one_is_the_default() {
        let usual = ResourceLimits::default();
        let configured =
            |processes, memory_mb| ResourceLimits::configured(Some(&CommandLimits { processes, memory_mb }));
        assert_eq!(ResourceLimits::configured(None), usual);
        assert_eq!(configured(None, None), usual);
        assert_eq!(configured(Some(0), Some(0)), ResourceLimits { processes: None, memory: None });
        assert_eq!(configured(Some(9), Some(2)), ResourceLimits { processes: Some(9), memory: Some(2 << 20) });
    }
}
