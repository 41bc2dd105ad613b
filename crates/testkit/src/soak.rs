//! Resources of a process: descriptors, threads, memory. For tests of leaks.

use std::fs;
use std::time::Duration;

use crate::TIMEOUT;

/// Bytes of memory: resident, with shared pages divided by the number of processes that share them, and without the
/// pages of files. The program itself is such a file, of which more is resident the more of it has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub rss: u64,
    pub pss: u64,
    pub anonymous: u64,
}

pub fn open_descriptors(pid: u32) -> usize {
    entries(pid, "fd")
}

pub fn threads(pid: u32) -> usize {
    entries(pid, "task")
}

/// Walks the page tables of the process, which takes a while for a large one.
pub fn memory(pid: u32) -> Memory {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes =
            line.and_then(|rest| rest.trim().strip_suffix(" kB")).and_then(|size| size.trim().parse::<u64>().ok());
        kilobytes.unwrap_or_else(|| panic!("expected a line `{name} N kB` in {path}, got: {text}")) << 10
    };
    Memory { rss: bytes("Rss:"), pss: bytes("Pss:"), anonymous: bytes("Anonymous:") }
}

/// Waits until a measure is at most `limit`: a server may release resources after it has responded.
pub async fn settles(what: &str, limit: usize, measure: impl Fn() -> usize) {
    let settled = async {
        while measure() > limit {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(TIMEOUT, settled).await.is_err() {
        panic!("expected {what} to come down to {limit}, still {} after {TIMEOUT:?}", measure());
    }
}

fn entries(pid: u32, folder: &str) -> usize {
    let path = format!("/proc/{pid}/{folder}");
    fs::read_dir(&path).unwrap_or_else(|error| panic!("cannot list {path}: {error}")).count()
}
