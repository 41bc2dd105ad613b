//! [`ToolContext`]: what a tool sees of the evaluation that it is called in.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::session::Slices;

/// A call of a tool: its ids, the deadline, and the session as the tool sees and changes it. The changes take effect
/// when the tool succeeds.
#[derive(Clone, Debug)]
pub struct ToolContext {
    pub(crate) working: Arc<Mutex<Slices>>,
    pub(crate) call_id: String,
    pub(crate) thread_id: String,
    pub(crate) turn_id: String,
    pub(crate) deadline: Option<Instant>,
}

impl ToolContext {
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    pub fn thread_id(&self) -> &str {
        &self.thread_id
    }

    pub fn turn_id(&self) -> &str {
        &self.turn_id
    }

    /// When the call is cancelled.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The current value of a slice.
    pub fn latest<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.working.lock().latest()
    }

    /// All values of a slice, the oldest first.
    pub fn all<T: Send + Sync + 'static>(&self) -> Vec<Arc<T>> {
        self.working.lock().all()
    }

    /// Adds a value to the slice of its type.
    pub fn append<T: Send + Sync + 'static>(&self, value: T) {
        self.working.lock().append(value);
    }

    /// Replaces the slice of this type by one value.
    pub fn seed<T: Send + Sync + 'static>(&self, value: T) {
        self.working.lock().seed(value);
    }

    /// Empties a slice.
    pub fn clear<T: Send + Sync + 'static>(&self) {
        self.working.lock().clear::<T>();
    }
}
