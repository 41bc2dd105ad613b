//! Items that were shown as started and not yet as completed.

use std::collections::BTreeMap;

use loomd_protocol::{ServerNotification, ThreadItem};

use crate::partial::{add_delta, delta_of};

/// The open items by turn, with the text and output published so far.
#[derive(Default)]
pub(super) struct OpenItems(BTreeMap<String, Vec<ThreadItem>>);

impl OpenItems {
    pub fn of(&self, turn_id: &str) -> Vec<ThreadItem> {
        self.0.get(turn_id).cloned().unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// False when no such item is open.
    pub fn remove(&mut self, turn_id: &str, item_id: &str) -> bool {
        let Some(items) = self.0.get_mut(turn_id) else { return false };
        let before = items.len();
        items.retain(|item| item.id() != item_id);
        let removed = items.len() < before;
        if items.is_empty() {
            self.0.remove(turn_id);
        }
        removed
    }

    /// False when there is nothing to publish: the item has ended, or never began.
    pub fn note(&mut self, notification: &ServerNotification) -> bool {
        match notification {
            ServerNotification::ItemStarted(started) => {
                self.0.entry(started.turn_id.clone()).or_default().push(started.item.clone());
            }
            ServerNotification::ItemCompleted(completed) => {
                return self.remove(&completed.turn_id, completed.item.id());
            }
            delta => {
                if let Some((turn_id, item_id)) = delta_of(delta)
                    && let Some(items) = self.0.get_mut(turn_id)
                    && let Some(item) = items.iter_mut().find(|item| item.id() == item_id)
                {
                    add_delta(item, delta);
                }
            }
        }
        true
    }
}
