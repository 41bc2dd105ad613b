//! What a thread and its child agents have spent.

use std::sync::{Arc, OnceLock};

use jiff::civil::Date;
use loomd_ledger::{Limit, Spent};
use loomd_protocol::Budget as RequestedBudget;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::{Metering, Warned};

/// What a thread and its child agents have spent. Shared by all of them.
#[derive(Default)]
pub(crate) struct ThreadSpending {
    /// What was spent while the thread was loaded, and before once [`Self::load`] has read that.
    spent: Mutex<Spent>,
    loaded: OnceCell<()>,
    warned: Mutex<Warned>,
    /// The budget that the thread was started with.
    budget: OnceLock<RequestedBudget>,
}

impl ThreadSpending {
    /// Sets the budget that the thread was started with. That of a child agent has no effect.
    pub fn set_budget(&self, budget: Option<&RequestedBudget>) {
        if let Some(budget) = budget {
            self.budget.get_or_init(|| budget.clone());
        }
    }

    pub fn budget(&self) -> Option<&RequestedBudget> {
        self.budget.get()
    }

    /// Reads what was spent before the thread was loaded, once. To be called before the thread makes a model call.
    pub async fn load(&self, metering: &Arc<Metering>, root: &str, since: Date) {
        let load = || async {
            let (metering, root) = (Arc::clone(metering), root.to_owned());
            let read = tokio::task::spawn_blocking(move || {
                metering.flush();
                metering.ledger().spent_by_thread(&root, since)
            });
            if let Ok(spent) = read.await {
                *self.spent.lock() = spent;
            }
        };
        self.loaded.get_or_init(load).await;
    }

    pub fn spent(&self) -> Spent {
        *self.spent.lock()
    }

    pub fn add(&self, more: Spent) {
        *self.spent.lock() += more;
    }

    /// Notes a warning; false when there was one before.
    pub fn warn(&self, limit: &Limit) -> bool {
        self.warned.lock().note(limit)
    }
}
