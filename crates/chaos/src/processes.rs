//! Processes that belong to a run, by a variable in their environment.

use std::fs;
use std::time::Duration;

pub const VARIABLE: &str = "LOOMD_CHAOS_RUN";

/// The processes of a run: nodes, and everything that they started. Each with its command line.
pub fn of_run(run: &str) -> Vec<(u32, String)> {
    let wanted = format!("{VARIABLE}={run}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()) {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
            found.push((pid, words.join(" ")));
        }
    }
    found
}

/// Those that are left after a while.
pub async fn left(run: &str) -> Vec<(u32, String)> {
    for _ in 0..100 {
        if of_run(run).is_empty() {
            return Vec::new();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    of_run(run)
}
