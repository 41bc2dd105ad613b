//! Threads from a home to the database, and back: the records byte for byte, with names, git facts, the archive and the
//! times of change.

use std::fs::File;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use loomd_store::{
    Batch, Durability, Error, Failure, FileStore, ListQuery, Position, Reader, Result, Store, StoredThread,
};

use crate::PostgresStore;

/// Threads that are listed at once.
const PAGE: usize = 100;
/// Bytes that are copied at once.
const PIECE: usize = 4 * 1024 * 1024;

/// What an import or export did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Threads that were copied, or completed where an earlier run had ended.
    pub copied: usize,
    /// Threads that were already there with the same records.
    pub present: usize,
    pub records: u64,
    /// Threads that were left out, and why.
    pub refused: Vec<String>,
}

/// Copies the threads of a home into the database. Can be run again: what is there is kept.
pub async fn import(from: &FileStore, to: &PostgresStore) -> Result<Transferred> {
    let mut done = Transferred::default();
    for archived in [false, true] {
        let mut after = None;
        loop {
            let page = from.list(every(archived, after)).await?;
            for thread in &page.threads {
                let copied = copy(from, to, thread, &mut done).await;
                if note(copied, thread, &mut done)? {
                    to.set_updated(thread.id(), thread.updated_ns).await?;
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(done)
}

/// Copies the threads of the database into a home.
pub async fn export(from: &PostgresStore, to: &FileStore) -> Result<Transferred> {
    let mut done = Transferred::default();
    for archived in [false, true] {
        let mut after = None;
        loop {
            let page = from.list(every(archived, after)).await?;
            for thread in &page.threads {
                let copied = copy(from, to, thread, &mut done).await;
                if note(copied, thread, &mut done)?
                    && let Some(path) = to.find(thread.id(), None).await?.path
                {
                    let at = SystemTime::UNIX_EPOCH
                        + Duration::from_nanos(u64::try_from(thread.updated_ns).unwrap_or_default());
                    let set = File::options().append(true).open(&path).and_then(|file| file.set_modified(at));
                    set.map_err(|error| Error::Storage {
                        place: path.display().to_string(),
                        failure: Failure::Other,
                        reason: error.to_string(),
                    })?;
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(done)
}

/// Counts what became of a thread; whether it was copied. Only failures of the target's storage end the transfer.
fn note(copied: Result<bool>, thread: &StoredThread, done: &mut Transferred) -> Result<bool> {
    match copied {
        Ok(true) => done.copied += 1,
        Ok(false) => done.present += 1,
        Err(error @ (Error::Storage { .. } | Error::Stopped)) => return Err(error),
        Err(error) => {
            done.refused.push(format!("{}: {error}", thread.id()));
            return Ok(false);
        }
    }
    copied
}

/// Every thread, by creation: what is copied does not move in the list.
fn every(archived: bool, after: Option<loomd_store::Cursor>) -> ListQuery {
    let every = ListQuery::new("");
    ListQuery { limit: PAGE, after, archived, providers: None, kinds: Some(Vec::new()), ..every }
}

/// Copies a thread; false when it is already there, whole.
async fn copy(from: &dyn Store, to: &dyn Store, thread: &StoredThread, done: &mut Transferred) -> Result<bool> {
    let id = thread.id();
    let source = from.open(id).await?;
    let there = match to.open(id).await {
        Ok(reader) => Some(reader),
        Err(Error::NotFound { .. }) => None,
        Err(error) => return Err(error),
    };
    let mut position = match &there {
        Some(target) => match common(&*source, &**target).await? {
            Some(position) => position,
            None => {
                done.refused.push(format!("{id}: already there with other records"));
                return Ok(false);
            }
        },
        None => Position::START,
    };
    let is_whole = there.is_some() && position == source.end().await?;
    let target = match there {
        Some(target) => target,
        None => to.create(id, thread.meta.created_at().unwrap_or(Timestamp::UNIX_EPOCH)),
    };
    if !is_whole {
        let mut writer = target.writer().await?;
        loop {
            let window = source.records_after(position, PIECE).await?;
            if window.is_empty() {
                break;
            }
            position = window.end();
            done.records += window.lines().count() as u64;
            let mut bytes = window.bytes().to_vec();
            if !bytes.ends_with(b"\n") {
                bytes.push(b'\n');
            }
            writer.append(Batch::of_lines(bytes), Durability::Synced).await?;
        }
    }
    if let Some(name) = &thread.name {
        to.rename(id, name).await?;
    }
    if let Some(patch) = from.git_patch(id).await? {
        to.patch_git(id, &patch).await?;
    }
    if thread.archived && !to.find(id, None).await?.archived {
        to.archive(id).await?;
    }
    Ok(!is_whole)
}

/// The position in the source up to which the target has the same records; `None` when the target has others.
async fn common(source: &dyn Reader, target: &dyn Reader) -> Result<Option<Position>> {
    let (mut at, mut there) = (Position::START, Position::START);
    loop {
        let ours = source.records_after(at, PIECE).await?;
        let theirs = target.records_after(there, PIECE).await?;
        if theirs.is_empty() {
            return Ok(Some(at));
        }
        if ours.is_empty() {
            return Ok(None);
        }
        for (our, their) in ours.lines().zip(theirs.lines()) {
            if our.bytes != their.bytes {
                return Ok(None);
            }
            (at, there) = (our.end, their.end);
        }
    }
}
