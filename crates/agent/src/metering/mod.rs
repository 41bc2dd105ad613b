//! What model calls, tools and turns spend: counted since the start of the process, appended to the ledger of the home,
//! and compared with budgets.
//!
//! Every model call goes through [`loomd_model::Session`], which requires a meter; [`Spending::meter`] makes it.

mod budgets;
mod counts;
mod latency;
mod spending;
#[cfg(test)]
mod tests;
mod thread;
mod turn_total;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use loomd_ledger::{EndedApproval, Entry, Ledger, Limit, Spent, Writer, today};
use loomd_store::StoredApproval;
use parking_lot::Mutex;

use crate::approval_audit::decision_word;

use budgets::{Budgets, Scope};
pub(crate) use counts::purpose_name;
pub use counts::{CallCount, CountedOutcome, Counts, Snapshot};
pub use latency::{LATENCY_BOUNDS, LatencySnapshot, StoreLatencies};
pub(crate) use spending::{Checked, Spending, SpendingOf};
pub(crate) use thread::ThreadSpending;
pub(crate) use turn_total::TurnTotal;

/// The folder of the ledger in the home.
const FOLDER: &str = "loomd/ledger";

/// How long a budget waits for entries that are about to be written.
const FLUSH: Duration = Duration::from_secs(2);

/// The ledger of the home, and counts since the start of the process.
pub struct Metering {
    ledger: Arc<Ledger>,
    writer: Writer,
    pub counts: Counts,
    /// How long appends to rollouts take.
    pub store: Arc<StoreLatencies>,
    /// The input that waits for running turns.
    pub(crate) inbox_inputs: Arc<AtomicUsize>,
    /// The limits of the day's budget that clients have been warned of.
    warned: Mutex<(Date, Warned)>,
}

/// The limits of a budget that clients have been warned of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Warned(u8);

impl Warned {
    /// Notes a warning; false when there was one before.
    pub fn note(&mut self, limit: &Limit) -> bool {
        let bit = 1 << limit.kind();
        let is_new = self.0 & bit == 0;
        self.0 |= bit;
        is_new
    }
}

impl Metering {
    pub fn new(home: &Path) -> Self {
        let ledger = ledger(home);
        Self {
            writer: Writer::new(Arc::clone(&ledger)),
            ledger,
            counts: Counts::default(),
            store: Arc::default(),
            inbox_inputs: Arc::default(),
            warned: Mutex::new((Date::ZERO, Warned::default())),
        }
    }

    /// The ledger, for queries. They block.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Waits until everything that was spent is in the ledger. Blocks.
    pub fn flush(&self) -> bool {
        self.writer.flush(FLUSH)
    }

    /// How much input waits for running turns.
    pub fn inbox_inputs(&self) -> usize {
        self.inbox_inputs.load(Ordering::Relaxed)
    }

    /// Entries that could not be written, and those that wait to be.
    pub fn backlog(&self) -> (u64, usize) {
        (self.writer.lost(), self.writer.queued())
    }

    /// Appends an approval that has ended to the ledger.
    pub(crate) fn approval_ended(&self, approval: &StoredApproval) {
        let Some(outcome) = &approval.outcome else { return };
        let by = outcome.by.as_ref();
        self.push(Entry::Approval(EndedApproval {
            at_ms: outcome.at_ms,
            thread_id: approval.thread_id.to_string(),
            turn_id: approval.turn_id.clone(),
            approval_id: approval.id.to_string(),
            method: approval.method.clone(),
            asked_at_ms: approval.asked_at_ms,
            state: outcome.end.name().into(),
            decision: outcome.decision.as_ref().map(decision_word),
            connection: by.map(|by| by.connection.clone()),
            client: by.and_then(|by| by.client.clone()),
            role: by.and_then(|by| by.role.clone()),
        }));
    }

    fn push(&self, entry: Entry) {
        self.writer.push(entry);
    }

    /// What all processes of the home have spent today. Blocks.
    fn spent_today(&self) -> Spent {
        self.flush();
        self.ledger.spent_today(Timestamp::now())
    }

    /// Notes a warning about today's budget; false when there was one before.
    fn warn_today(&self, limit: &Limit) -> bool {
        let now = today(Timestamp::now());
        let mut warned = self.warned.lock();
        if warned.0 != now {
            *warned = (now, Warned::default());
        }
        warned.1.note(limit)
    }
}

/// The ledger of a home.
pub fn ledger(home: &Path) -> Arc<Ledger> {
    Arc::new(Ledger::new(home.join(FOLDER)))
}
