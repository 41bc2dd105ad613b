//! `skills/changed`: subscribers of threads are notified when the skills of the thread change.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use loomd_protocol::{ServerNotification, SkillsChangedNotification};
use loomd_skills::{OnChange, Watch, WatchGuard};
use loomd_store::ThreadId;

use crate::event_sink::{EventSink, Subscriber};

/// Returns the subscribers of a thread.
pub(crate) type SubscribersOf = Box<dyn Fn(ThreadId) -> Vec<Subscriber> + Send + Sync>;

/// The watched skills of all threads.
pub(crate) struct SkillChanges(Watch<ThreadId>);

impl SkillChanges {
    pub fn new(event_sink: Arc<dyn EventSink>, subscribers_of: SubscribersOf) -> Self {
        let subscribers_of = Arc::new(subscribers_of);
        let on_change: OnChange<ThreadId> = Box::new(move |threads| {
            let (event_sink, subscribers_of) = (Arc::clone(&event_sink), Arc::clone(&subscribers_of));
            let notify = async move {
                // A client that has subscribed to several threads is notified once.
                let mut to: Vec<Subscriber> = threads.into_iter().flat_map(|id| subscribers_of(id)).collect();
                to.sort_unstable_by_key(|subscriber| subscriber.0);
                to.dedup();
                let changed = ServerNotification::SkillsChanged(SkillsChangedNotification {});
                event_sink.notify(&to, changed).await;
            };
            Box::pin(notify) as Pin<Box<dyn Future<Output = ()> + Send>>
        });
        Self(Watch::new(on_change))
    }

    /// Watches the folders of a thread until the guard is dropped.
    pub fn watch(&self, thread: ThreadId, folders: &[PathBuf]) -> WatchGuard<ThreadId> {
        self.0.subscribe(thread, folders.iter().cloned())
    }
}
