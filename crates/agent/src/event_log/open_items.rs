//! Items that were shown as started and not yet as completed.

use std::collections::BTreeMap;

use loomd_protocol::{ServerNotification, ThreadItem};

use crate::partial::{add_delta, delta_of};

/// The open items by turn, with the text and output published so far.
#[derive(Default)]
pub(super) struct OpenItems(BTreeMap<String, Vec<OpenItem>>);

struct OpenItem {
    item: ThreadItem,
    started_at_ms: i64,
}

impl OpenItems {
    pub fn of(&self, turn_id: &str) -> Vec<ThreadItem> {
        self.0.get(turn_id).into_iter().flatten().map(|open| open.item.clone()).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns when the item started; `None` when no such item is open.
    pub fn remove(&mut self, turn_id: &str, item_id: &str) -> Option<i64> {
        let items = self.0.get_mut(turn_id)?;
        let started = items.iter().find(|open| open.item.id() == item_id).map(|open| open.started_at_ms);
        items.retain(|open| open.item.id() != item_id);
        if items.is_empty() {
            self.0.remove(turn_id);
        }
        started
    }

    /// False when there is nothing to publish: the item has ended, or never began. Adds the start of an item to the
    /// notification about its end.
    pub fn note(&mut self, notification: &mut ServerNotification) -> bool {
        match notification {
            ServerNotification::ItemStarted(started) => {
                let open = OpenItem { item: started.item.clone(), started_at_ms: started.started_at_ms };
                self.0.entry(started.turn_id.clone()).or_default().push(open);
            }
            ServerNotification::ItemCompleted(completed) => {
                completed.started_at_ms = self.remove(&completed.turn_id, completed.item.id());
                return completed.started_at_ms.is_some();
            }
            delta => {
                if let Some((turn_id, item_id)) = delta_of(delta)
                    && let Some(items) = self.0.get_mut(turn_id)
                    && let Some(open) = items.iter_mut().find(|open| open.item.id() == item_id)
                {
                    add_delta(&mut open.item, delta);
                }
            }
        }
        true
    }
}
