//! The names of threads, by id: a copy of `session_index.jsonl` in the index. The file is the truth. What was appended
//! to it since the table was last brought up to date is read, and no more, so that a start does not read all of it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Statement, Transaction, TransactionBehavior, params};

use super::error::Result;
use super::row::FileStamp;
use crate::error::Error;
use crate::file::descriptors;
use crate::file::names;
use crate::rollout::whole_lines;
use crate::{StoredThread, ThreadId};

/// Bytes of the file that are in memory at a time.
const PIECE: u64 = 1024 * 1024;
/// Bytes before the place where reading goes on that are compared: a file that was rewritten ends otherwise there.
const TAIL: u64 = 64;

/// Keeps the table `names` of an index equal to the names file.
pub(super) struct NameTable {
    path: PathBuf,
    /// The stamp of the file that the table is known to equal; the inner `None` stands for a missing file.
    current: Option<Option<FileStamp>>,
    /// Bytes of the file that were read by this process.
    bytes_read: u64,
}

/// Which part of the file the table holds.
struct Coverage {
    stamp: FileStamp,
    /// The end of the last whole line that was read.
    read: u64,
    /// The bytes before `read`.
    tail: Vec<u8>,
}

impl NameTable {
    pub(super) fn new(home: &Path) -> Self {
        Self { path: names::path(home), current: None, bytes_read: 0 }
    }

    /// Brings the table up to date with the file.
    pub(super) fn update(&mut self, db: &Connection) -> Result<()> {
        let stamp = FileStamp::of(&self.path)?;
        if self.current == Some(stamp) {
            return Ok(());
        }
        if Coverage::load(db)?.map(|coverage| coverage.stamp) != stamp {
            // Begins with the right to write: one that reads first fails when another process writes.
            let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
            match stamp {
                Some(stamp) => self.extend(&transaction, stamp)?,
                None => clear(&transaction)?,
            }
            transaction.commit()?;
        }
        self.current = Some(stamp);
        Ok(())
    }

    /// The thread's name. A blank one counts as none.
    pub(super) fn get(&self, db: &Connection, id: ThreadId) -> Result<Option<String>> {
        let mut statement = db.prepare_cached(FIND)?;
        find(&mut statement, id)
    }

    /// Gives each thread its name.
    pub(super) fn fill(&self, db: &Connection, threads: &mut [StoredThread]) -> Result<()> {
        let no_file = self.current == Some(None);
        let mut statement = db.prepare_cached(FIND)?;
        for thread in threads {
            thread.name = if no_file { None } else { find(&mut statement, thread.id())? };
        }
        Ok(())
    }

    fn extend(&mut self, db: &Connection, stamp: FileStamp) -> Result<()> {
        let mut file = descriptors::open_file(&self.path).map_err(Error::io(&self.path))?;
        let known = Coverage::load(db)?.filter(|known| known.stamp.size < stamp.size);
        let mut read = match known {
            Some(known) if self.tail(&mut file, known.read).map_err(Error::io(&self.path))? == known.tail => known.read,
            _ => {
                clear(db)?;
                0
            }
        };
        let mut want = PIECE;
        loop {
            let bytes = self.read(&mut file, read, want).map_err(Error::io(&self.path))?;
            let at_end = (bytes.len() as u64) < want;
            let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
            // The last line may lack its end. It is read again when the file has grown.
            insert(db, if at_end { &bytes } else { &bytes[..whole] })?;
            read += whole as u64;
            if at_end {
                break;
            }
            // A line that is longer than a piece is read whole.
            want = if whole == 0 { want * 2 } else { PIECE };
        }
        let tail = self.tail(&mut file, read).map_err(Error::io(&self.path))?;
        Coverage { stamp, read, tail }.save(db)
    }

    fn tail(&mut self, file: &mut File, end: u64) -> io::Result<Vec<u8>> {
        let start = end.saturating_sub(TAIL);
        self.read(file, start, end - start)
    }

    fn read(&mut self, file: &mut File, from: u64, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        file.take(limit).read_to_end(&mut bytes)?;
        self.bytes_read += bytes.len() as u64;
        Ok(bytes)
    }
}

impl Coverage {
    /// `None` when the table is empty.
    fn load(db: &Connection) -> Result<Option<Self>> {
        let mut statement = db.prepare_cached("SELECT size, mtime, read, tail FROM names_file")?;
        let row = statement.query_row([], |row| {
            let stamp = FileStamp { size: row.get::<_, i64>(0)?.unsigned_abs(), mtime: row.get(1)? };
            Ok(Self { stamp, read: row.get::<_, i64>(2)?.unsigned_abs(), tail: row.get(3)? })
        });
        Ok(row.optional()?)
    }

    fn save(&self, db: &Connection) -> Result<()> {
        let Self { stamp, read, tail } = self;
        db.prepare_cached(
            "INSERT OR REPLACE INTO names_file (key, size, mtime, read, tail) VALUES (0, ?1, ?2, ?3, ?4)",
        )?
        .execute(params![stamp.size as i64, stamp.mtime, *read as i64, tail])?;
        Ok(())
    }
}

const FIND: &str = "SELECT name FROM names WHERE id = ?1 AND name <> ''";

fn find(statement: &mut Statement<'_>, id: ThreadId) -> Result<Option<String>> {
    Ok(statement.query_row([id.as_uuid().as_bytes().as_slice()], |row| row.get(0)).optional()?)
}

fn clear(db: &Connection) -> Result<()> {
    Ok(db.execute_batch("DELETE FROM names; DELETE FROM names_file")?)
}

/// Adds the names in some lines. The last line of a thread counts.
fn insert(db: &Connection, bytes: &[u8]) -> Result<()> {
    let names: HashMap<ThreadId, String> = whole_lines(bytes).filter_map(|(_, line)| names::parse(line)).collect();
    let mut statement =
        db.prepare_cached("INSERT INTO names (id, name) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET name = ?2")?;
    for (id, name) in names {
        statement.execute(params![id.as_uuid().as_bytes().as_slice(), name.trim()])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::index::schema;

    const ID: &str = "54cbd9a4-eb27-4019-a111-baa1c7c1e4e6";

    /// A home with an index, and what a process remembers of it.
    struct World {
        home: tempfile::TempDir,
        db: Connection,
        table: NameTable,
    }

    impl World {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let db = schema::open(&home.path().join("index")).unwrap();
            let table = NameTable::new(home.path());
            Self { home, db, table }
        }

        fn write(&self, text: &str) {
            std::fs::write(names::path(self.home.path()), text).unwrap();
        }

        fn name(&mut self) -> Option<String> {
            self.table.update(&self.db).unwrap();
            self.table.get(&self.db, ID.parse().unwrap()).unwrap()
        }

        /// The name that another process finds, and the bytes of the file that it reads for that.
        fn restarted(&self) -> (Option<String>, u64) {
            let db = schema::open(&self.home.path().join("index")).unwrap();
            let mut table = NameTable::new(self.home.path());
            table.update(&db).unwrap();
            (table.get(&db, ID.parse().unwrap()).unwrap(), table.bytes_read)
        }
    }

    fn line(name: &str) -> String {
        format!(r#"{{"id":"{ID}","thread_name":"{name}","updated_at":"2030-01-01T00:00:00Z"}}"#)
    }

    fn others(count: usize) -> String {
        (0..count).map(|_| format!("{}\n", line("other").replace(ID, &ThreadId::new().to_string()))).collect()
    }

    #[test]
    fn the_last_readable_line_of_a_thread_gives_its_name() {
        for (file, name) in [
            (String::new(), None),
            (format!("{}\n{}\ngarbage\n\n", line("old"), line("new")), Some("new")),
            (format!("{}\n{}", line("old"), line("no line break")), Some("no line break")),
            (format!("{}\n{}", line("old"), &line("torn")[..40]), Some("old")),
            (format!("{}\n", line("  padded ")), Some("padded")),
            (format!("{}\n{}\n", line("old"), line(" ")), None),
        ] {
            let mut world = World::new();
            world.write(&file);
            assert_eq!(world.name().as_deref(), name, "{file}");
            assert_eq!(world.restarted().0.as_deref(), name, "after a restart: {file}");
        }
    }

    #[test]
    fn a_start_reads_only_what_was_appended_to_the_names_file() {
        let mut world = World::new();
        let mut file = others(20_000) + &line("one") + "\n";
        world.write(&file);
        assert_eq!(world.name().as_deref(), Some("one"));
        assert!(world.table.bytes_read >= file.len() as u64);
        assert_eq!(world.restarted(), (Some("one".into()), 0), "an unchanged file is not read");
        let added = others(3) + &line("two") + "\n";
        file.push_str(&added);
        world.write(&file);
        let (name, read) = world.restarted();
        assert_eq!(name.as_deref(), Some("two"));
        assert!(read <= added.len() as u64 + 2 * TAIL, "{read} of {} bytes", file.len());
        let before = world.table.bytes_read;
        assert_eq!(world.name().as_deref(), Some("two"));
        assert_eq!(world.table.bytes_read, before, "what another process has indexed is not read again");
    }

    #[test]
    fn a_names_file_that_was_rewritten_is_read_anew() {
        let mut world = World::new();
        world.write(&format!("{}\n{}", line("one"), others(2)));
        assert_eq!(world.name().as_deref(), Some("one"));
        world.write(&others(40));
        assert_eq!((world.name(), world.restarted().0), (None, None), "longer");
        world.write(&format!("{}\n", line("two")));
        assert_eq!(world.name().as_deref(), Some("two"), "shorter");
        std::fs::remove_file(names::path(world.home.path())).unwrap();
        assert_eq!((world.name(), world.restarted().0), (None, None), "removed");
    }

    #[test]
    fn a_line_that_is_longer_than_a_piece_is_read_whole() {
        let mut world = World::new();
        let long = "x".repeat(3 * PIECE as usize);
        world.write(&format!("{}{}\n{}", others(2), line(&long), others(2)));
        assert_eq!(world.name().as_deref(), Some(&*long));
    }

    #[test]
    fn names_of_other_processes_and_after_a_torn_tail_are_found() {
        let mut world = World::new();
        let id = ID.parse().unwrap();
        assert_eq!(world.name(), None);
        names::append(world.home.path(), id, "one").unwrap();
        assert_eq!(world.name().as_deref(), Some("one"));
        let path = names::path(world.home.path());
        std::fs::write(&path, [std::fs::read(&path).unwrap(), b"{\"id\":\"54cb".to_vec()].concat()).unwrap();
        assert_eq!(world.name().as_deref(), Some("one"));
        names::append(world.home.path(), id, "two").unwrap();
        assert_eq!(world.name().as_deref(), Some("two"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}
