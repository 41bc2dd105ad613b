//! Where rollouts live: `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`, or flat in `archived_sessions`.
//! Times in names and folders are local (`TZ` is honoured); all times inside files are UTC.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::ThreadId;

/// The folder of active threads.
pub const SESSIONS: &str = "sessions";
/// The folder of archived threads.
pub const ARCHIVED: &str = "archived_sessions";
/// The folder of what other servers do not know: leases and git patches.
pub const OWN: &str = "loomd";

const TIME: &str = "%Y-%m-%dT%H-%M-%S";
/// Characters of a time in a file name.
const TIME_LEN: usize = 19;

/// The name of a rollout file, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolloutName {
    /// Local time of creation, whole seconds.
    pub time: DateTime,
    pub id: ThreadId,
}

impl RolloutName {
    /// The name of a thread that is created at `time`.
    pub fn new(id: ThreadId, time: Timestamp) -> Self {
        let time = time.to_zoned(TimeZone::system()).datetime();
        Self { time: time.with().subsec_nanosecond(0).build().unwrap_or(time), id }
    }

    /// `None` when the name is not a rollout's.
    pub fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
        let (time, rest) = (rest.get(..TIME_LEN)?, rest.get(TIME_LEN..)?);
        let id = rest.strip_prefix('-')?.parse().ok()?;
        Some(Self { time: parse_time(time)?, id })
    }

    /// The name of the file at `path`.
    pub fn of(path: &Path) -> Option<Self> {
        Self::parse(path.file_name()?.to_str()?)
    }

    /// `rollout-2026-11-15T06-42-53-<id>.jsonl`
    pub fn file_name(&self) -> String {
        format!("rollout-{}-{}.jsonl", self.time.strftime(TIME), self.id)
    }

    /// `sessions/2026/11/15`
    pub fn folder(&self) -> PathBuf {
        Path::new(SESSIONS).join(self.time.strftime("%Y/%m/%d").to_string())
    }

    /// Where the thread is stored while it is active.
    pub fn active_path(&self, home: &Path) -> PathBuf {
        home.join(self.folder()).join(self.file_name())
    }

    /// The name's time read as UTC, in seconds: within a day of when the thread was created.
    pub(crate) fn seconds(&self) -> i64 {
        self.time.to_zoned(TimeZone::UTC).map_or(0, |time| time.timestamp().as_second())
    }
}

/// `2026-11-15T06-42-53`. By hand: a home may hold a hundred thousand names.
fn parse_time(text: &str) -> Option<DateTime> {
    let bytes = text.as_bytes();
    if bytes.len() != TIME_LEN
        || [(4, b'-'), (7, b'-'), (10, b'T'), (13, b'-'), (16, b'-')].iter().any(|(at, mark)| bytes[*at] != *mark)
    {
        return None;
    }
    let number = |from: usize, to: usize| {
        bytes[from..to]
            .iter()
            .try_fold(0i16, |number, digit| digit.is_ascii_digit().then(|| number * 10 + i16::from(digit - b'0')))
    };
    let two = |from: usize| i8::try_from(number(from, from + 2)?).ok();
    DateTime::new(number(0, 4)?, two(5)?, two(8)?, two(11)?, two(14)?, two(17)?, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "rollout-2025-03-04T05-06-07-54cbd9a4-eb27-4019-a111-baa1c7c1e4e6.jsonl";

    #[test]
    fn a_file_name_holds_the_time_and_the_id() {
        let name = RolloutName::parse(NAME).unwrap();
        assert_eq!(name.time.to_string(), "2025-03-04T05:06:07");
        assert_eq!(name.id.to_string(), "54cbd9a4-eb27-4019-a111-baa1c7c1e4e6");
        assert_eq!(name.file_name(), NAME);
        assert_eq!(name.active_path(Path::new("/h")), Path::new("/h/sessions/2025/03/04").join(NAME));
        assert_eq!(name.seconds(), 1741064767);
    }

    #[test]
    fn other_names_are_not_rollouts() {
        for name in [
            "notes.txt",
            "rollout-bad-name.jsonl",
            "rollout-2025-03-04T05-06-07-54cbd9a4.jsonl",
            "rollout-2025-13-04T05-06-07-54cbd9a4-eb27-4019-a111-baa1c7c1e4e6.jsonl",
            "rollout-2025-03-04T05-06-07-54cbd9a4-eb27-4019-a111-baa1c7c1e4e6.jsonl.tmp",
            "rollout-2025-03-04T05-06-\u{e9}7-54cbd9a4-eb27-4019-a111-baa1c7c1e4e6.jsonl",
            "",
        ] {
            assert_eq!(RolloutName::parse(name), None, "{name}");
        }
    }
}
