//! Who calls a server, as the server's side sees it.

use std::pin::Pin;

use tokio_util::sync::CancellationToken;

use crate::elicitation::{Elicitation, ElicitationAnswer};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A thread that uses a server, or one of its calls. A connection is shared, so what a server sends on its own is
/// routed to the caller that it belongs to.
pub trait Caller: Send + Sync {
    /// The thread. An elicitation that names no call goes to the one thread that has calls in flight, if there is
    /// just one.
    fn thread(&self) -> &str;

    /// Asks the user. `withdrawn` is cancelled when the server no longer waits for the answer; the future must resolve
    /// soon then, with any answer.
    fn elicit(&self, elicitation: Elicitation, withdrawn: CancellationToken) -> BoxFuture<'_, ElicitationAnswer>;

    /// Called in the order of the server's notifications, while the call runs. Must not block.
    fn progress(&self, _progress: Progress) {}
}

/// A progress notification of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}
