//! The files of a ledger: `<year>-<month>.jsonl`, in UTC. Every process of the home appends to them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use parking_lot::Mutex;

use crate::{Entry, Spent};

/// A longer line is not one of a ledger.
const MAX_LINE: u64 = 64 * 1024;

/// The ledger of a home.
pub struct Ledger {
    folder: PathBuf,
    current: Mutex<Option<(Month, File)>>,
    today: Mutex<Option<Today>>,
}

/// The name of a month, as `2026-11`.
type Month = String;

/// What was spent on a day, up to a place in the month's file.
struct Today {
    day: Date,
    place: u64,
    spent: Spent,
}

impl Ledger {
    /// The ledger in a folder, which is created with the first entry.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, current: Mutex::default(), today: Mutex::default() }
    }

    /// Appends an entry. Blocks for a write of some hundred bytes.
    pub fn append(&self, entry: &Entry) -> io::Result<()> {
        let month = month_of(day_of(entry.at_ms()));
        let mut current = self.current.lock();
        if current.as_ref().is_none_or(|(open, _)| *open != month) {
            loomd_private::create_dir_all(&self.folder)?;
            let file = loomd_private::options().read(true).append(true).create(true).open(self.path(&month))?;
            *current = Some((month, file));
        }
        let Some((_, file)) = current.as_mut() else { return Ok(()) };
        let mut line = Vec::with_capacity(512);
        // A process that was killed while it wrote leaves the beginning of a line.
        if ends_in_a_line(file)? {
            line.push(b'\n');
        }
        serde_json::to_writer(&mut line, entry)?;
        line.push(b'\n');
        file.write_all(&line)
    }

    /// The entries of these days in the order of their files, the first and the last day included. What is no entry is
    /// skipped, and so are months that cannot be read.
    pub fn entries(&self, days: std::ops::RangeInclusive<Date>) -> impl Iterator<Item = Entry> {
        let (first, last) = (month_of(*days.start()), month_of(*days.end()));
        let mut months = self.months();
        months.retain(|month| *month >= first && *month <= last);
        let files: Vec<PathBuf> = months.iter().map(|month| self.path(month)).collect();
        let entries = files.into_iter().filter_map(|file| Lines::open(&file, 0).ok()).flatten();
        entries.filter_map(Line::entry).filter(move |entry| days.contains(&day_of(entry.at_ms())))
    }

    /// Everything that a thread and its child agents have spent since a day, which is not after its creation.
    pub fn spent_by_thread(&self, thread_id: &str, since: Date) -> Spent {
        let mut spent = Spent::default();
        let first = month_of(since);
        let months = self.months().into_iter().filter(|month| *month >= first);
        for line in months.filter_map(|month| Lines::open(&self.path(&month), 0).ok()).flatten() {
            // Most lines are of other threads, and are not decoded.
            if memchr::memmem::find(&line.bytes, thread_id.as_bytes()).is_none() {
                continue;
            }
            if let Some(entry) = line.entry().filter(|entry| entry.is_of(thread_id)) {
                spent.add(&entry);
            }
        }
        spent
    }

    /// What all processes of the home have spent on the day of `now`, in UTC. Reads what was added since the last call.
    pub fn spent_today(&self, now: Timestamp) -> Spent {
        let day = today(now);
        let mut known_today = self.today.lock();
        let known = known_today.take().filter(|today| today.day == day);
        let mut known = known.unwrap_or(Today { day, place: 0, spent: Spent::default() });
        if let Ok(lines) = Lines::open(&self.path(&month_of(day)), known.place) {
            for line in lines {
                known.place = line.end;
                if let Some(entry) = line.entry().filter(|entry| day_of(entry.at_ms()) == day) {
                    known.spent.add(&entry);
                }
            }
        }
        let spent = known.spent;
        *known_today = Some(known);
        spent
    }

    /// Blocks writes as long as the result is held.
    #[cfg(test)]
    pub(crate) fn hang(&self) -> impl Drop + '_ {
        self.current.lock()
    }

    fn months(&self) -> Vec<Month> {
        let names = self.folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut months: Vec<Month> =
            names.filter_map(|name| Some(name.to_str()?.strip_suffix(".jsonl")?.to_owned())).collect();
        months.sort_unstable();
        months
    }

    fn path(&self, month: &str) -> PathBuf {
        self.folder.join(format!("{month}.jsonl"))
    }
}

/// Whether a file ends within a line.
fn ends_in_a_line(file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    Ok(last != [b'\n'])
}

/// Whole lines of a file.
struct Lines {
    reader: BufReader<File>,
    place: u64,
}

struct Line {
    bytes: Vec<u8>,
    /// Where the next line begins.
    end: u64,
}

impl Line {
    fn entry(self) -> Option<Entry> {
        serde_json::from_slice(&self.bytes).ok()
    }
}

impl Lines {
    fn open(path: &Path, place: u64) -> io::Result<Self> {
        let (mut file, _) = loomd_regular::open(path)?;
        file.seek(SeekFrom::Start(place))?;
        Ok(Self { reader: BufReader::new(file), place })
    }
}

impl Iterator for Lines {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        let mut bytes = Vec::new();
        loop {
            let available = self.reader.fill_buf().ok()?;
            // The rest of a line that is still being written is read later.
            if available.is_empty() {
                return None;
            }
            let (part, ended) = match available.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (available.len(), false),
            };
            if bytes.len() as u64 <= MAX_LINE {
                bytes.extend_from_slice(&available[..part]);
            }
            self.reader.consume(part);
            self.place += part as u64;
            if ended {
                return Some(Line { bytes, end: self.place });
            }
        }
    }
}

/// The day of a moment in UTC. Moments that no calendar has count as 1970.
pub(crate) fn day_of(at_ms: i64) -> Date {
    Timestamp::from_millisecond(at_ms).unwrap_or_default().to_zoned(TimeZone::UTC).date()
}

/// The day of a moment, as the ledger counts days: in UTC.
pub fn today(now: Timestamp) -> Date {
    now.to_zoned(TimeZone::UTC).date()
}

fn month_of(day: Date) -> Month {
    format!("{:04}-{:02}", day.year(), day.month())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jiff::ToSpan;
    use jiff::civil::date;
    use proptest::prelude::*;

    use super::*;
    use crate::{ModelCall, Money, Tokens, TurnWork};

    fn at_noon(day: Date) -> i64 {
        day.at(12, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap().timestamp().as_millisecond()
    }

    fn call(day: Date, thread_id: &str, input: u64) -> Entry {
        Entry::Call(ModelCall {
            at_ms: at_noon(day),
            thread_id: thread_id.into(),
            tokens: Tokens { input, ..Tokens::default() },
            price: Some(Money(input * 10)),
            ..ModelCall::default()
        })
    }

    const DAY: Date = date(2026, 11, 16);

    fn now() -> Timestamp {
        Timestamp::from_millisecond(at_noon(DAY)).unwrap()
    }

    #[test]
    fn entries_are_found_by_their_days() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(dir.path().join("ledger"));
        assert_eq!(ledger.entries(Date::MIN..=Date::MAX).count(), 0);
        let days = [date(2026, 10, 31), date(2026, 11, 1), DAY];
        for day in days {
            ledger.append(&call(day, "t", 1)).unwrap();
        }
        let found = |days| ledger.entries(days).collect::<Vec<_>>();
        assert_eq!(found(Date::MIN..=Date::MAX), days.map(|day| call(day, "t", 1)));
        assert_eq!(found(days[1]..=days[1]), [call(days[1], "t", 1)]);
        assert_eq!(found(days[0]..=days[1]).len(), 2);
        let mut files: Vec<_> =
            fs::read_dir(dir.path().join("ledger")).unwrap().map(|file| file.unwrap().file_name()).collect();
        files.sort_unstable();
        assert_eq!(files, ["2026-10.jsonl", "2026-11.jsonl"]);
    }

    #[test]
    fn torn_lines_and_unknown_types_are_skipped_and_the_next_entry_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(dir.path().into());
        ledger.append(&call(DAY, "t", 1)).unwrap();
        let path = dir.path().join("2026-11.jsonl");
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"type\":\"later\"}\n{\"type\":\"call\",\"atMs\":17").unwrap();
        ledger.append(&call(DAY, "t", 2)).unwrap();
        let found: Vec<_> = ledger.entries(DAY..=DAY).collect();
        assert_eq!(found, [call(DAY, "t", 1), call(DAY, "t", 2)]);
        assert_eq!(ledger.spent_today(now()).tokens, 3);
    }

    #[test]
    fn today_includes_what_other_processes_add_and_starts_anew_at_midnight() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = (Ledger::new(dir.path().into()), Ledger::new(dir.path().into()));
        assert_eq!(ours.spent_today(now()), Spent::default());
        ours.append(&call(DAY, "t", 1)).unwrap();
        theirs.append(&call(DAY, "u", 2)).unwrap();
        assert_eq!(ours.spent_today(now()).tokens, 3);
        theirs.append(&Entry::Turn(TurnWork { at_ms: at_noon(DAY), tool_calls: 4, ..TurnWork::default() })).unwrap();
        let spent = ours.spent_today(now());
        assert_eq!((spent.tokens, spent.money, spent.model_calls, spent.tool_calls), (3, Money(30), 2, 4));
        let tomorrow = now() + 24.hours();
        assert_eq!(ours.spent_today(tomorrow), Spent::default());
        ours.append(&call(DAY.tomorrow().unwrap(), "t", 5)).unwrap();
        assert_eq!(ours.spent_today(tomorrow).tokens, 5);
    }

    #[test]
    fn a_thread_has_spent_what_its_child_agents_have_spent() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(dir.path().into());
        let child = |root: &str| match call(DAY, "child", 5) {
            Entry::Call(call) => Entry::Call(ModelCall { root_thread_id: Some(root.into()), ..call }),
            entry => entry,
        };
        for entry in [call(DAY, "a", 1), call(DAY, "b", 2), child("a"), child("b"), call(DAY, "a", 3)] {
            ledger.append(&entry).unwrap();
        }
        let work = TurnWork { at_ms: at_noon(DAY), thread_id: "a".into(), tool_calls: 2, ..TurnWork::default() };
        ledger.append(&Entry::Turn(work)).unwrap();
        let spent = ledger.spent_by_thread("a", DAY);
        assert_eq!((spent.tokens, spent.model_calls, spent.tool_calls), (9, 3, 2));
        assert_eq!(ledger.spent_by_thread("a", date(2026, 12, 1)), Spent::default());
    }

    #[test]
    fn processes_that_append_at_once_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let folder = dir.path().to_path_buf();
                scope.spawn(move || {
                    let ledger = Ledger::new(folder);
                    for _ in 0..200 {
                        ledger.append(&call(DAY, &thread.to_string(), 1)).unwrap();
                    }
                });
            }
        });
        let ledger = Ledger::new(dir.path().into());
        assert_eq!(ledger.entries(DAY..=DAY).count(), 800);
        assert_eq!(ledger.spent_by_thread("2", DAY).tokens, 200);
    }

    proptest! {
        /// Whatever a file contains, reading it ends, and what is appended afterwards is found.
        #[test]
        fn any_file_is_read(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join("2026-11.jsonl"), &bytes).unwrap();
            let ledger = Ledger::new(dir.path().into());
            let before = ledger.entries(DAY..=DAY).count();
            ledger.append(&call(DAY, "t", 7)).unwrap();
            prop_assert_eq!(ledger.entries(DAY..=DAY).count(), before + 1);
        }
    }
}
