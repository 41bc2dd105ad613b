//! The folders watched at the operating system, each once however many watches need it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use notify::event::{Event, EventKind, ModifyKind};
use notify::{Config, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};

use super::thread::{Change, Input};

/// Queued changes. Beyond this they are replaced by [`Change::Anything`].
const MAX_QUEUED: usize = 8 * 1024;

/// Interval of polling folders that the operating system does not watch.
const POLL_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Folders {
    sink: EventSink,
    system: Option<RecommendedWatcher>,
    /// Created when the operating system refuses a folder, for lack of descriptors or on an unsupported file system.
    polling: Option<PollWatcher>,
    watched: HashMap<PathBuf, WatchedFolder>,
}

struct WatchedFolder {
    users: usize,
    polled: bool,
}

impl Folders {
    pub fn new(inputs: &Sender<Input>, queued: Arc<AtomicUsize>) -> Self {
        let sink = EventSink { inputs: inputs.clone(), queued };
        let system = notify::recommended_watcher(sink.clone().handler()).ok();
        Self { sink, system, polling: None, watched: HashMap::new() }
    }

    pub fn add(&mut self, folder: &Path) {
        if let Some(watched) = self.watched.get_mut(folder) {
            watched.users += 1;
            return;
        }
        let by_system = |system: &mut RecommendedWatcher| system.watch(folder, RecursiveMode::NonRecursive).is_ok();
        let polled = !self.system.as_mut().is_some_and(by_system);
        if polled && let Some(polling) = self.polling() {
            _ = polling.watch(folder, RecursiveMode::NonRecursive);
        }
        self.watched.insert(folder.into(), WatchedFolder { users: 1, polled });
    }

    pub fn remove(&mut self, folder: &Path) {
        let Some(watched) = self.watched.get_mut(folder) else { return };
        watched.users -= 1;
        if watched.users > 0 {
            return;
        }
        let polled = watched.polled;
        self.watched.remove(folder);
        // Fails if the folder is gone, and its watch with it.
        match (polled, &mut self.system, &mut self.polling) {
            (false, Some(system), _) => _ = system.unwatch(folder),
            (true, _, Some(polling)) => _ = polling.unwatch(folder),
            _ => {}
        }
    }

    /// Watches a folder again after it was removed and maybe created again.
    pub fn renew(&mut self, folder: &Path) {
        if self.watched.get(folder).is_some_and(|watched| !watched.polled)
            && let Some(system) = &mut self.system
        {
            _ = system.unwatch(folder);
            _ = system.watch(folder, RecursiveMode::NonRecursive);
        }
    }

    fn polling(&mut self) -> Option<&mut PollWatcher> {
        if self.polling.is_none() {
            let config = Config::default().with_poll_interval(POLL_EVERY);
            self.polling = PollWatcher::new(self.sink.clone().handler(), config).ok();
        }
        self.polling.as_mut()
    }
}

/// Queues events of the operating system.
#[derive(Clone)]
struct EventSink {
    inputs: Sender<Input>,
    queued: Arc<AtomicUsize>,
}

impl EventSink {
    fn handler(self) -> impl FnMut(notify::Result<Event>) + Send + 'static {
        move |event| {
            let change = match event {
                Ok(event) if event.need_rescan() => Change::Anything,
                Ok(event) => match event.kind {
                    EventKind::Access(_) => return,
                    kind => Change::Paths { structural: is_structural(kind), paths: event.paths },
                },
                Err(_) => Change::Anything,
            };
            let waiting = self.queued.fetch_add(1, Ordering::Relaxed);
            let change = match waiting {
                0..MAX_QUEUED => change,
                MAX_QUEUED => Change::Anything,
                _ => {
                    self.queued.fetch_sub(1, Ordering::Relaxed);
                    return;
                }
            };
            _ = self.inputs.send(Input::Change(change));
        }
    }
}

fn is_structural(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_)))
}
