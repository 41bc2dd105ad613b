//! [`Gate`]: blocks tasks until the test opens it, once.

use std::fmt;
use std::sync::Arc;

use crate::watched_value::WatchedValue;

#[derive(Clone)]
pub struct Gate(Arc<WatchedValue<bool>>);

impl Gate {
    /// A closed gate.
    #[allow(clippy::new_without_default, reason = "a default gate would leave open whether it is closed")]
    pub fn new() -> Self {
        Self(Arc::new(WatchedValue::new(false)))
    }

    /// Lets all tasks through, now and later.
    pub fn open(&self) {
        self.0.update(|open| *open = true);
    }

    pub(crate) async fn passed(&self) {
        self.0.until(|open| open.then_some(())).await;
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.read(|open| *open) { "Gate(open)" } else { "Gate(closed)" })
    }
}
