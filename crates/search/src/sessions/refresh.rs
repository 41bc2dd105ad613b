//! Keeps the trees of a session current: by watching their folders, or, if there are too many, by polling.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::Session;
use crate::watch::FolderWatcher;

/// Folders that a session may watch. The operating system has a limit for all processes.
const MAX_WATCHED: usize = 32 * 1024;

/// Time from the first change to the refresh.
const GATHER: Duration = Duration::from_millis(100);

/// Interval of polling, and the inverse of the share of time that it may take.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
const POLL_SHARE: u32 = 20;

impl Session {
    /// Runs until the session ends.
    pub(super) async fn keep_current(self: Arc<Self>) {
        let ended = self.ended.clone();
        tokio::select! {
            () = ended.cancelled() => {}
            () = self.refresh_on_changes() => {}
        }
    }

    async fn refresh_on_changes(self: Arc<Self>) {
        let changes = Arc::new(Notify::new());
        let mut watched = self.watch(Arc::clone(&changes)).await;
        loop {
            let Some(watching) = watched.take() else { return self.refresh_periodically().await };
            changes.notified().await;
            sleep(GATHER).await;
            watched = self.refresh(Some(watching)).await;
        }
    }

    async fn refresh_periodically(self: Arc<Self>) {
        let mut pause = POLL_INTERVAL;
        loop {
            sleep(pause).await;
            let start = Instant::now();
            self.refresh(None).await;
            pause = POLL_INTERVAL.max(start.elapsed() * POLL_SHARE);
        }
    }

    /// Refreshes the trees, and returns the watcher if it still covers everything.
    async fn refresh(self: &Arc<Self>, watched: Option<FolderWatcher>) -> Option<FolderWatcher> {
        let session = Arc::clone(self);
        let refreshed = spawn_blocking(move || {
            let never = AtomicBool::new(false);
            let changes = watched.as_ref().map(FolderWatcher::take).filter(|changes| !changes.everything);
            let mut changed = false;
            for (_, tree) in &session.trees {
                changed |= match &changes {
                    Some(changes) => tree.refresh_folders(&changes.folders, &never),
                    None => tree.refresh(&never),
                };
            }
            // There may be new folders.
            let watched = watched.and_then(|watched| if changed { session.watch_all(watched) } else { Some(watched) });
            (changed, watched)
        });
        let (changed, watched) = refreshed.await.ok()?;
        if changed {
            self.state.lock().stale = true;
            self.wake.notify_one();
        }
        watched
    }

    async fn watch(self: &Arc<Self>, changes: Arc<Notify>) -> Option<FolderWatcher> {
        let session = Arc::clone(self);
        let watch = spawn_blocking(move || {
            let watched = FolderWatcher::new(move || changes.notify_one())?;
            session.watch_all(watched)
        });
        watch.await.ok()?
    }

    /// Watches all folders of all trees; `None` if they are too many.
    fn watch_all(&self, mut watched: FolderWatcher) -> Option<FolderWatcher> {
        let mut folders: Vec<PathBuf> = Vec::new();
        for (_, tree) in &self.trees {
            folders.extend(tree.folders(MAX_WATCHED - folders.len())?);
        }
        watched.watch(folders).then_some(watched)
    }
}
