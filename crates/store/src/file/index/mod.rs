//! The index of stored threads, `loomd.sqlite`: a cache of the heads of all rollouts and of the names file, from
//! which lists and lookups are answered. The files are the truth: those that other programs add, remove, extend or rewrite
//! are noticed by their times and sizes, and the index can be deleted at any moment.

mod error;
mod facet;
mod folders;
mod names;
mod query;
mod row;
mod schema;
mod search;
mod unindexed;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loomd_protocol::SortDirection;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::error::Error;
use crate::list::{Cursor, ListQuery, Page};
use crate::{StoredThread, ThreadId};
use error::IndexError;
pub(crate) use error::Result;
use folders::Folders;
use names::NameTable;
use row::{ROW_STATE, RowState, StampReader, ThreadRow};
pub(crate) use search::{Candidate, NewFilter};
use unindexed::{Next, Order, Unindexed, UnindexedFile};

/// The file's name. Other servers delete what is called `state_*.sqlite`.
pub(crate) const FILE_NAME: &str = "loomd.sqlite";
/// Heads read in one step of the background work.
const BATCH: usize = 100;
/// Heads read in one transaction.
const LARGEST_BATCH: usize = 2000;
/// Rows whose files are looked at in one step of a sweep. A start costs no more than this, however many there are.
const SWEEP: usize = 100;
/// The most recently changed threads, which are the ones that others append to, are looked at every time, and so are
/// the newest of those that are not listed yet.
const RECENT: usize = 32;
/// How often all files are checked for changes by other programs, while there are lists.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// Rounds in which rows of a page may turn out to be stale.
const ROUNDS: usize = 10;

/// What is left to do after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Files have not been read.
    More,
    /// Everything has been read; files that others may have changed are looked at.
    Sweeping,
    Done,
}

/// The index of one home. All calls block; one owner at a time.
pub(crate) struct Index {
    home: PathBuf,
    path: PathBuf,
    db: Connection,
    folders: Folders,
    unindexed: Unindexed,
    names: NameTable,
    checked: bool,
    swept: Option<Instant>,
    /// The last key that a running sweep has come to.
    sweeping: Option<i64>,
    /// Whether heads were read since the last sweep.
    grown: bool,
    /// How many rollouts could not be read when that was last logged.
    unreadable_logged: usize,
    /// The number of the last search.
    searches: i64,
}

impl Index {
    pub(crate) fn open(home: &Path, sqlite_home: &Path) -> Result<Self> {
        let path = sqlite_home.join(FILE_NAME);
        let db = schema::open(&path)?;
        let folders = Folders::load(&db)?;
        Ok(Self {
            home: home.to_owned(),
            path,
            db,
            folders,
            unindexed: Unindexed::new(home),
            names: NameTable::new(home),
            checked: false,
            swept: None,
            sweeping: None,
            grown: false,
            unreadable_logged: 0,
            searches: 0,
        })
    }

    /// Runs an operation; when the index turns out to be damaged, starts over and runs it again.
    pub(crate) fn run<T>(&mut self, operation: impl Fn(&mut Self) -> Result<T>) -> Result<T> {
        match operation(self) {
            Err(IndexError::Sqlite(error)) if schema::is_damage(&error) => {
                tracing::warn!(%error, "the thread index is damaged and rebuilt");
                self.rebuild()?;
                operation(self)
            }
            done => done,
        }
    }

    fn rebuild(&mut self) -> Result<()> {
        self.db = Connection::open_in_memory()?;
        schema::discard(&self.path);
        self.db = schema::open(&self.path)?;
        self.folders = Folders::load(&self.db)?;
        self.unindexed = Unindexed::new(&self.home);
        self.names = NameTable::new(&self.home);
        (self.checked, self.swept, self.sweeping) = (false, None, None);
        Ok(())
    }

    /// One page of a list.
    pub(crate) fn list(&mut self, query: &ListQuery) -> Result<Page> {
        self.check_folders()?;
        self.check_unlisted(query.archived)?;
        self.check_unreadable(query.archived)?;
        let mut page = self.listed(query)?;
        page.unreadable = self.count_unreadable(query.archived)?;
        self.add_names(&mut page.threads)?;
        Ok(page)
    }

    fn listed(&mut self, query: &ListQuery) -> Result<Page> {
        if !query.by_creation() {
            self.check_recent(query.archived)?;
        }
        if !query.by_creation() && query.after.is_some() && query.direction == SortDirection::Desc {
            return self.later_page(query);
        }
        for _ in 0..ROUNDS {
            let rows = self.driven_page(query)?;
            if !self.verify_all(rows.iter().map(|row| &row.entry))? {
                return self.page(rows, query);
            }
        }
        // Files change faster than they are looked at: the answer is as fresh as any.
        let rows = self.driven_page(query)?;
        self.page(rows, query)
    }

    /// A page of the last changed threads that is not the first. A thread whose change is noticed only now
    /// would stand before the pages that the client has, where it never saw it: it keeps its place this once.
    fn later_page(&mut self, query: &ListQuery) -> Result<Page> {
        let rows = self.driven_page(query)?;
        let entries: Vec<RowState> = rows.iter().map(|row| row.entry.clone()).collect();
        let Page { threads, next, back, .. } = self.page(rows, query)?;
        let mut shown = Vec::with_capacity(threads.len());
        for (thread, entry) in threads.into_iter().zip(entries) {
            if !skip_unreadable(row::verify(&self.db, &self.home, &entry))? {
                shown.push(thread);
            } else if let Some(row) = row::by_key(&self.db, entry.key)?.filter(|row| row.entry.listed) {
                shown.push(row.into_thread(&self.home)?);
            }
        }
        Ok(Page { threads: shown, next, back, unreadable: 0 })
    }

    /// Reads as many heads as the page needs, newest first; all of them for a page that does not begin with the newest,
    /// or that names its threads.
    fn driven_page(&mut self, query: &ListQuery) -> Result<Vec<ThreadRow>> {
        query::name_threads(&self.db, query)?;
        let order = order(query);
        if query.is_narrow() || query.direction == SortDirection::Asc {
            self.complete()?;
        }
        let mut count = query.limit + 1;
        loop {
            let rows = query::page(&self.db, query)?;
            let Some(bound) = self.unindexed.bound(order) else { return Ok(rows) };
            let last = rows.get(query.limit.saturating_sub(1)).filter(|_| rows.len() > query.limit);
            if last.is_some_and(|row| time(row, query) > bound) {
                return Ok(rows);
            }
            let files = self.newest(order, count)?;
            self.read_heads(files)?;
            // Ever more at once: a filter that matches nothing must not be queried again and again.
            count = (count * 2).min(LARGEST_BATCH);
        }
    }

    /// Reads all heads that have not been read.
    fn complete(&mut self) -> Result<()> {
        while self.unindexed.bound(Order::Created).is_some() {
            let files = self.newest(Order::Created, LARGEST_BATCH)?;
            self.read_heads(files)?;
        }
        Ok(())
    }

    /// The newest files that have not been read, of which it is certain that they are.
    fn newest(&mut self, order: Order, count: usize) -> Result<Vec<UnindexedFile>> {
        let mut found = Vec::new();
        while found.len() < count {
            match self.unindexed.next(order) {
                None => break,
                Some(Next::Folder(folder)) => {
                    if let Err(error) = self.read_folder(&folder) {
                        found.into_iter().for_each(|file| self.unindexed.push(file));
                        return Err(error);
                    }
                }
                Some(Next::File(mut file)) if order == Order::Created && file.created.is_none() => {
                    file.created = Some(row::created(&self.home, &file));
                    self.unindexed.push(file);
                }
                Some(Next::File(file)) => found.push(file),
            }
        }
        Ok(found)
    }

    /// One unreadable folder does not hide the others.
    fn read_folder(&mut self, folder: &str) -> Result<()> {
        match self.folders.read(&self.db, &self.home, folder, &mut self.unindexed) {
            Err(IndexError::Store(error @ Error::Storage { .. })) => {
                tracing::warn!(%error, "a folder of threads cannot be read");
                Ok(())
            }
            read => read,
        }
    }

    fn page(&self, mut rows: Vec<ThreadRow>, query: &ListQuery) -> Result<Page> {
        let more = rows.len() > query.limit;
        rows.truncate(query.limit);
        let ends = rows.first().zip(rows.last()).map(|(first, last)| [time(first, query), time(last, query)]);
        let threads = rows.into_iter().map(|row| row.into_thread(&self.home)).collect::<Result<Vec<_>>>()?;
        let Some((first, (last, [first_at, last_at]))) = threads.first().zip(threads.last().zip(ends)) else {
            return Ok(Page::default());
        };
        let next = more.then(|| cursor(last_at, last.id(), query));
        let back = Some(cursor(first_at, first.id(), query).reversed());
        Ok(Page { next, back, threads, unreadable: 0 })
    }

    /// The name that was given to a thread, stored or not.
    pub(crate) fn name(&mut self, id: ThreadId) -> Result<Option<String>> {
        self.names.update(&self.db)?;
        self.names.get(&self.db, id)
    }

    /// Gives each thread its name.
    pub(crate) fn add_names(&mut self, threads: &mut [StoredThread]) -> Result<()> {
        self.names.update(&self.db)?;
        self.names.fill(&self.db, threads)
    }

    /// A thread by its id; among several files the active one.
    pub(crate) fn find(&mut self, id: ThreadId, archived: Option<bool>) -> Result<StoredThread> {
        let mut thread = self.find_unnamed(id, archived)?;
        self.add_names(std::slice::from_mut(&mut thread))?;
        Ok(thread)
    }

    fn find_unnamed(&mut self, id: ThreadId, archived: Option<bool>) -> Result<StoredThread> {
        for look in [false, true] {
            if look {
                self.check_folders()?;
                while let Some(folder) = self.unindexed.next_folder() {
                    self.read_folder(&folder)?;
                }
                for file in self.unindexed.of_thread(id) {
                    self.read_head(&file)?;
                }
            }
            for _ in 0..ROUNDS {
                let Some(row) = row::by_id(&self.db, id, archived)? else { break };
                if !row::verify(&self.db, &self.home, &row.entry)? {
                    return row.into_thread(&self.home);
                }
            }
        }
        Err(Error::NotFound { id }.into())
    }

    /// What was made from a rollout.
    pub(crate) fn derived(&mut self, id: ThreadId) -> Result<Option<Vec<u8>>> {
        let mut statement = self.db.prepare_cached("SELECT bytes FROM derived WHERE id = ?1")?;
        Ok(statement.query_row([id.as_uuid().as_bytes().as_slice()], |row| row.get(0)).optional()?)
    }

    pub(crate) fn keep_derived(&mut self, id: ThreadId, bytes: &[u8]) -> Result<()> {
        let sql = "INSERT INTO derived (id, bytes) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET bytes = ?2";
        self.db.prepare_cached(sql)?.execute(params![id.as_uuid().as_bytes().as_slice(), bytes])?;
        Ok(())
    }

    pub(crate) fn drop_derived(&mut self, id: ThreadId) -> Result<()> {
        let sql = "DELETE FROM derived WHERE id = ?1";
        self.db.prepare_cached(sql)?.execute([id.as_uuid().as_bytes().as_slice()])?;
        Ok(())
    }

    /// Takes note of a file that this process wrote, moved or deleted.
    pub(crate) fn touch(&mut self, path: &Path) -> Result<()> {
        let Some((folder, name)) = self.place(path) else { return Ok(()) };
        let (folder, name) = (folder.to_owned(), name.to_owned());
        match row::entry(&self.db, &folder, &name)? {
            Some(entry) => {
                skip_unreadable(row::verify(&self.db, &self.home, &entry))?;
            }
            None => {
                self.unindexed.drop_files(|file| *file.folder == *folder && *file.name == *name);
                skip_unreadable(row::index_file(&self.db, &self.home, &folder, &name))?;
            }
        }
        Ok(())
    }

    /// Folder and name of a file inside the home.
    fn place<'a>(&self, path: &'a Path) -> Option<(&'a str, &'a str)> {
        let inside = path.strip_prefix(&self.home).ok()?;
        Some((inside.parent()?.to_str()?, inside.file_name()?.to_str()?))
    }

    /// One step of the work that makes the index complete.
    pub(crate) fn step(&mut self) -> Result<Step> {
        if !self.checked {
            self.check_folders()?;
            return Ok(Step::More);
        }
        if let Some(folder) = self.unindexed.next_folder() {
            self.read_folder(&folder)?;
            return Ok(Step::More);
        }
        if !self.unindexed.is_empty() {
            let files = std::iter::from_fn(|| match self.unindexed.next(Order::Created) {
                Some(Next::File(file)) => Some(file),
                _ => None,
            });
            let files = files.take(BATCH).collect();
            self.read_heads(files)?;
            return Ok(Step::More);
        }
        self.sweep()
    }

    /// Whether every file has been read.
    pub(crate) fn is_complete(&self) -> bool {
        self.checked && self.unindexed.is_empty()
    }

    /// Whether it is time to look at all files for changes by others.
    pub(crate) fn wants_sweep(&self) -> bool {
        self.sweeping.is_none() && self.swept.is_none_or(|swept| swept.elapsed() >= SWEEP_EVERY)
    }

    /// Looks at the files of some rows, those that were added last first. Only that shows what others appended: no
    /// folder changes with it. What lists and lookups show is looked at anyway, so nothing waits for this.
    fn sweep(&mut self) -> Result<Step> {
        if self.sweeping.is_none() {
            // All names are known, whether or not the files have changed.
            let transaction = self.db.unchecked_transaction()?;
            self.folders.save(&transaction)?;
            transaction.commit()?;
            if !self.wants_sweep() {
                return Ok(Step::Done);
            }
            if std::mem::take(&mut self.grown) {
                // What reading many heads has put into the page cache is not needed any more.
                self.db.execute_batch("PRAGMA shrink_memory")?;
            }
        }
        let entries = self.entries(
            &format!("SELECT {ROW_STATE} FROM rollouts WHERE key < ?1 ORDER BY key DESC LIMIT ?2"),
            params![self.sweeping.unwrap_or(i64::MAX), SWEEP as i64],
        )?;
        self.verify_all(entries.iter())?;
        self.sweeping = entries.last().filter(|_| entries.len() == SWEEP).map(|entry| entry.key);
        if self.sweeping.is_some() {
            return Ok(Step::Sweeping);
        }
        self.swept = Some(Instant::now());
        Ok(Step::Done)
    }

    fn check_folders(&mut self) -> Result<()> {
        // No transaction, as nothing is mostly written.
        self.folders.check(&self.db, &self.home, &mut self.unindexed)?;
        self.checked = true;
        Ok(())
    }

    /// A thread whose first message was not there when its head was read is in no list that could find it out.
    fn check_unlisted(&mut self, archived: bool) -> Result<()> {
        let sql = format!(
            "SELECT {ROW_STATE} FROM rollouts WHERE NOT listed AND archived = ?1 ORDER BY created_at DESC LIMIT ?2"
        );
        let entries = self.entries(&sql, params![archived, RECENT as i64])?;
        self.verify_all(entries.iter()).map(|_| ())
    }

    /// Reads again what could not be read, newest first.
    fn check_unreadable(&mut self, archived: bool) -> Result<()> {
        let sql = format!(
            "SELECT {ROW_STATE} FROM rollouts WHERE mtime = -9223372036854775808 AND archived = ?1 ORDER BY created_at DESC LIMIT ?2"
        );
        let entries = self.entries(&sql, params![archived, RECENT as i64])?;
        self.verify_all(entries.iter()).map(|_| ())
    }

    /// How many rollouts could not be read; a change of the number is logged.
    fn count_unreadable(&mut self, archived: bool) -> Result<usize> {
        let sql = "SELECT count(*) FROM rollouts WHERE mtime = -9223372036854775808 AND archived = ?1";
        let count: i64 = self.db.prepare_cached(sql)?.query_row([archived], |row| row.get(0))?;
        let count = usize::try_from(count).unwrap_or(0);
        if std::mem::replace(&mut self.unreadable_logged, count) != count && count > 0 {
            tracing::warn!(count, "the list of threads is incomplete: some rollouts could not be read");
        }
        Ok(count)
    }

    fn check_recent(&mut self, archived: bool) -> Result<()> {
        let entries = query::recent(&self.db, archived, RECENT)?;
        self.verify_all(entries.iter()).map(|_| ())
    }

    fn entries(&self, sql: &str, params: impl rusqlite::Params) -> Result<Vec<RowState>> {
        let mut statement = self.db.prepare_cached(sql)?;
        let rows = statement.query_map(params, RowState::read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns whether any row changed.
    fn verify_all<'a>(&self, entries: impl Iterator<Item = &'a RowState>) -> Result<bool> {
        let (mut changed, mut stamps) = (false, StampReader::new(&self.home));
        for entry in entries {
            changed |= skip_unreadable(row::verify_with(&self.db, &mut stamps, entry))?;
        }
        Ok(changed)
    }

    fn read_heads(&mut self, files: Vec<UnindexedFile>) -> Result<()> {
        self.grown = true;
        let done = self.write_heads(&files);
        if done.is_err() {
            files.into_iter().for_each(|file| self.unindexed.push(file));
        }
        done
    }

    fn write_heads(&self, files: &[UnindexedFile]) -> Result<()> {
        // Begins with the right to write: one that reads first fails when another process writes.
        let transaction = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate)?;
        files.iter().try_for_each(|file| skip_unreadable(self.read_head(file)))?;
        Ok(transaction.commit()?)
    }

    fn read_head(&self, file: &UnindexedFile) -> Result<()> {
        row::index_file_as(&self.db, &self.home, &file.folder, &file.name, file.stamp)
    }
}

fn order(query: &ListQuery) -> Order {
    if query.by_creation() { Order::Created } else { Order::Changed }
}

/// The time that a row is ordered by.
fn time(row: &ThreadRow, query: &ListQuery) -> i64 {
    if query.by_creation() { row.created_at } else { row.entry.stamp.mtime }
}

fn cursor(at: i64, id: ThreadId, query: &ListQuery) -> Cursor {
    match query.by_creation() {
        true => Cursor::of_seconds(at, id),
        false => Cursor { at, id, inclusive: false },
    }
}

/// One file that cannot be read does not keep the others from being listed. It is read again with the next look.
fn skip_unreadable<T: Default>(done: Result<T>) -> Result<T> {
    match done {
        Err(IndexError::Store(error @ Error::Storage { .. })) => {
            tracing::debug!(%error, "a rollout cannot be read");
            Ok(T::default())
        }
        done => done,
    }
}

#[cfg(test)]
mod tests;
