//! Keeping the trees of a session up to date while it lasts: by hearing of changes, or, where there are too
//! many folders for that, by looking through them once in a while.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::{Session, lock};
use crate::watch::Watched;

/// Folders that a session may watch. The operating system has a limit for all programs together.
const MAX_WATCHED: usize = 32 * 1024;

/// Changes are gathered for this long before folders are read.
const GATHER: Duration = Duration::from_millis(100);

/// How often trees are looked through that are not watched, and how much of the time that may take.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const LOOK_SHARE: u32 = 20;

impl Session {
    /// Ends with the session.
    pub(super) async fn keep_up(self: Arc<Self>) {
        let ended = self.ended.clone();
        tokio::select! {
            () = ended.cancelled() => {}
            () = self.keep_watching() => {}
        }
    }

    async fn keep_watching(self: Arc<Self>) {
        let heard = Arc::new(Notify::new());
        let mut watched = self.watch(Arc::clone(&heard)).await;
        loop {
            let Some(watching) = watched.take() else { return self.keep_looking().await };
            heard.notified().await;
            sleep(GATHER).await;
            watched = self.refresh(Some(watching)).await;
        }
    }

    async fn keep_looking(self: Arc<Self>) {
        let mut pause = LOOK_EVERY;
        loop {
            sleep(pause).await;
            let start = Instant::now();
            self.refresh(None).await;
            pause = LOOK_EVERY.max(start.elapsed() * LOOK_SHARE);
        }
    }

    /// Reads what changed, and gives the watch back if it still covers everything.
    async fn refresh(self: &Arc<Self>, watched: Option<Watched>) -> Option<Watched> {
        let session = Arc::clone(self);
        let refreshed = spawn_blocking(move || {
            let never = AtomicBool::new(false);
            let heard = watched.as_ref().map(Watched::take).filter(|heard| !heard.everything);
            let mut changed = false;
            for (_, tree) in &session.trees {
                changed |= match &heard {
                    Some(heard) => tree.refresh_folders(&heard.folders, &never),
                    None => tree.refresh(&never),
                };
            }
            // There may be new folders.
            let watched = watched.and_then(|watched| if changed { session.watch_all(watched) } else { Some(watched) });
            (changed, watched)
        });
        let (changed, watched) = refreshed.await.ok()?;
        if changed {
            lock(&self.state).stale = true;
            self.wake.notify_one();
        }
        watched
    }

    async fn watch(self: &Arc<Self>, heard: Arc<Notify>) -> Option<Watched> {
        let session = Arc::clone(self);
        let watch = spawn_blocking(move || {
            let watched = Watched::new(move || heard.notify_one())?;
            session.watch_all(watched)
        });
        watch.await.ok()?
    }

    /// Watches all folders of all trees; `None` when that is too much.
    fn watch_all(&self, mut watched: Watched) -> Option<Watched> {
        let mut folders: Vec<PathBuf> = Vec::new();
        for (_, tree) in &self.trees {
            folders.extend(tree.folders(MAX_WATCHED - folders.len())?);
        }
        watched.watch(folders).then_some(watched)
    }
}
