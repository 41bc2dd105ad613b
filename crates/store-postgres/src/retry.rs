//! Waiting for a database that is away for a moment: it restarts, or the connection to it was lost.
//!
//! What failed with [`Failure::Unreachable`] may have been done or not. So only what may be done twice is repeated here;
//! the append, which may not, asks the database what became of it (`writer.rs`).

use std::time::Duration;

use loomd_store::{Error, Failure, Result};
use tokio::time::Instant;

use crate::database::Database;

/// How long the database may take for one operation that does not grow with its data.
const ANSWER: Duration = Duration::from_secs(30);

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The tries of one operation.
pub(crate) struct Patience {
    pub deadline: Instant,
    pause: Duration,
}

impl Patience {
    pub fn new(time: Duration) -> Self {
        Self { deadline: Instant::now() + time, pause: FIRST_PAUSE }
    }

    /// Waits before the next try. `false` when there is none: the error is of another sort, or the time is over.
    pub async fn goes_on(&mut self, error: &Error) -> bool {
        if !is_unreachable(error) || Instant::now() + self.pause >= self.deadline {
            return false;
        }
        tracing::debug!(%error, "waiting for the database");
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }
}

/// Whether an error means that the database was not reached, or that the connection was lost.
pub(crate) fn is_unreachable(error: &Error) -> bool {
    matches!(error, Error::Storage { failure: Failure::Unreachable, .. })
}

impl Database {
    /// Repeats an operation that may be done twice, until the database answers or the time that the options give is
    /// over. A database that was never reached is not waited for.
    pub async fn retry<T, F: Future<Output = Result<T>>>(&self, mut operation: impl FnMut() -> F) -> Result<T> {
        self.retry_long(|| self.answered(ANSWER, operation())).await
    }

    /// Fails with [`Failure::Unreachable`] when an operation takes longer.
    pub async fn answered<T>(&self, time: Duration, operation: impl Future<Output = Result<T>>) -> Result<T> {
        let late = |_| self.place.error(Failure::Unreachable, "the server does not answer");
        tokio::time::timeout(time, operation).await.map_err(late)?
    }

    /// The same for operations that may take long: they read as much as they were asked for.
    pub async fn retry_long<T, F: Future<Output = Result<T>>>(&self, mut operation: impl FnMut() -> F) -> Result<T> {
        let mut patience = Patience::new(self.patience);
        loop {
            match operation().await {
                Err(error) if self.was_reached() && patience.goes_on(&error).await => {}
                done => return done,
            }
        }
    }
}
