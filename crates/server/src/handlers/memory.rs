//! `memory/*`, `thread/memory*` and `rollout/compress`. No memories are made of threads here: what there is was made by
//! other programs of the same home.

use std::fs;
use std::io;
use std::path::Path;

use loomd_agent::{Presence, parse_id};
use loomd_protocol::{
    MemoryResetResponse, MemoryStatusParams, MemoryStatusResponse, NoParams, RolloutCompressResponse, RpcError,
    ThreadMemoryModeSetParams, ThreadMemoryModeSetResponse, ThreadMemoryReadParams, ThreadMemoryReadResponse, call,
};
use tokio::task::spawn_blocking;

use super::organise::{presence, run, thread_not_found};
use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// The folder of memories in the home.
const MEMORIES: &str = "memories";
/// The most threads that `memory/status` can be asked for.
const MAX_CONSOLIDATED: u32 = 4096;

/// `thread/memoryMode/set`
pub(crate) async fn set_mode(cx: &Context, params: ThreadMemoryModeSetParams) -> Handled<call::ThreadMemoryModeSet> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    match presence(cx, id).await? {
        Presence::Stored | Presence::Pending => {}
        Presence::Ephemeral => {
            let message = format!("ephemeral thread does not support metadata updates: {id}");
            return Err(RpcError::invalid_request(message));
        }
        Presence::Missing => {
            return Err(RpcError::invalid_request(format!("no rollout found for thread id {id}")));
        }
    }
    run(cx, move |organiser| organiser.set_memory_mode(id, params.mode)).await?;
    answer(ThreadMemoryModeSetResponse {})
}

/// `thread/memory/read`: there is no memory of single threads.
pub(crate) async fn read(cx: &Context, params: ThreadMemoryReadParams) -> Handled<call::ThreadMemoryRead> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    match presence(cx, id).await? {
        Presence::Missing => Err(thread_not_found(&id.to_string(), RpcError::INVALID_REQUEST)),
        _ => answer(ThreadMemoryReadResponse { summary: None }),
    }
}

/// `memory/reset`: empties the folder of memories.
pub(crate) async fn reset(cx: &Context, _: NoParams) -> Handled<call::MemoryReset> {
    let folder = cx.app.sources.home.join(MEMORIES);
    let emptied =
        spawn_blocking(move || empty(&folder)).await.map_err(|error| RpcError::internal(error.to_string()))?;
    emptied.map_err(|error| RpcError::internal(format!("failed to reset memories: {error}")))?;
    answer(MemoryResetResponse {})
}

/// Removes what is in a folder, which stays. Links are removed, not followed.
fn empty(folder: &Path) -> io::Result<()> {
    let entries = match fs::symlink_metadata(folder) {
        Ok(found) if found.is_dir() => fs::read_dir(folder)?,
        // A link to a folder elsewhere is not ours to empty.
        Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

/// `memory/status`: no thread was ever consolidated.
pub(crate) async fn status(_: &Context, params: MemoryStatusParams) -> Handled<call::MemoryStatus> {
    if params.min_consolidated_threads.is_some_and(|count| !(1..=MAX_CONSOLIDATED).contains(&count)) {
        let message = format!("minConsolidatedThreads must be between 1 and {MAX_CONSOLIDATED}");
        return Err(RpcError::invalid_params(message));
    }
    answer(MemoryStatusResponse { v2_consolidated_threads: 0, v2_ready: false })
}

/// `rollout/compress`: rollouts stay as they are, so that every program of the home can read them.
pub(crate) async fn compress(_: &Context, _: NoParams) -> Handled<call::RolloutCompress> {
    answer(RolloutCompressResponse {})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_empties_the_folder_and_follows_no_link() {
        let home = tempfile::tempdir().unwrap();
        let (folder, other) = (home.path().join("memories"), home.path().join("other"));
        empty(&folder).unwrap();
        fs::create_dir_all(folder.join("deep/er")).unwrap();
        fs::write(folder.join("deep/note.md"), "x").unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("kept"), "x").unwrap();
        std::os::unix::fs::symlink(&other, folder.join("link")).unwrap();
        empty(&folder).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        assert!(other.join("kept").exists());
        let linked = home.path().join("linked");
        std::os::unix::fs::symlink(&other, &linked).unwrap();
        assert!(empty(&linked).is_err() && other.join("kept").exists());
    }
}
