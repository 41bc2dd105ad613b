//! The limits of open descriptors of this process and of the programs that it starts. Theirs is not raised: some
//! programs allocate memory for every possible descriptor, or cannot use those above 1,023.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit before it was raised.
static ORIGINAL: OnceLock<Rlimit> = OnceLock::new();

/// Raises this process's limit of open descriptors as far as it may. Programs that are started get the limit
/// that there was before.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum
        && setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).is_ok()
    {
        _ = ORIGINAL.set(limit);
    }
}

/// The limit of started programs; `None` when it is this process's.
pub(crate) fn original() -> Option<libc::rlimit> {
    let infinite = |limit: Option<u64>| limit.unwrap_or(libc::RLIM_INFINITY);
    let limit = ORIGINAL.get()?;
    Some(libc::rlimit { rlim_cur: infinite(limit.current), rlim_max: infinite(limit.maximum) })
}
