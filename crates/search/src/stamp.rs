//! [`Stamp`]: detects changes of a folder or file by its modification time.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Precision of modification times: a file modified just before its stamp was taken may be modified again without a
/// new time.
const PRECISION: Duration = Duration::from_millis(20);

/// A modification time, unless it is too recent to rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    At(SystemTime),
    /// Nothing exists at the path.
    Missing,
    /// Too recent; equal to nothing.
    Fresh,
}

impl Stamp {
    /// To be taken before the content is read, so that later changes are detected.
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
    fn a_stamp_is_current_until_a_change() {
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
