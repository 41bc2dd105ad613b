//! Whether a folder or a file is still as it was, from its time of change.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// File systems note times only this precisely: what changed just before it was looked at may change again
/// and keep its time.
const PRECISION: Duration = Duration::from_millis(20);

/// A time of change, and whether it can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    At(SystemTime),
    /// Nothing is there.
    Missing,
    /// Too fresh to tell; equal to nothing.
    Fresh,
}

impl Stamp {
    /// Taken before the content is looked at: whatever changes from now on is noticed.
    pub fn take(path: &Path) -> Self {
        let now = SystemTime::now();
        match time(path) {
            None => Self::Missing,
            Some(time) if now.duration_since(time).is_ok_and(|age| age > PRECISION) => Self::At(time),
            Some(_) => Self::Fresh,
        }
    }

    pub fn is_current(self, path: &Path) -> bool {
        match self {
            Self::At(then) => time(path) == Some(then),
            Self::Missing => time(path).is_none(),
            Self::Fresh => false,
        }
    }
}

fn time(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_current_until_something_changes() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("d");
        assert_eq!(Stamp::take(&folder), Stamp::Missing);
        assert!(Stamp::Missing.is_current(&folder));
        fs::create_dir(&folder).unwrap();
        let old = SystemTime::now() - Duration::from_secs(60);
        fs::File::open(&folder).unwrap().set_modified(old).unwrap();
        let stamp = Stamp::take(&folder);
        assert_eq!(stamp, Stamp::At(old));
        assert!(stamp.is_current(&folder));
        fs::write(folder.join("x"), "").unwrap();
        assert!(!stamp.is_current(&folder));
        assert!(!Stamp::Fresh.is_current(&folder));
    }
}
