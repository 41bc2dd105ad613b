//! The samples that one client has requested, so that it can cancel them by the ids of their requests.

use std::collections::HashMap;

use loomd_protocol::RequestId;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The samples of one connection. They are cancelled when it ends.
#[derive(Default)]
pub(crate) struct Samples {
    all: CancellationToken,
    open: Mutex<HashMap<RequestId, CancellationToken>>,
}

impl Samples {
    /// A token that is cancelled with the request, or with the connection.
    pub fn add(&self, id: RequestId) -> CancellationToken {
        let token = self.all.child_token();
        let mut open = self.open.lock();
        // Tokens of samples that have been answered.
        open.retain(|_, token| !token.is_cancelled());
        open.insert(id, token.clone());
        token
    }

    pub fn remove(&self, id: &RequestId) {
        self.open.lock().remove(id);
    }

    /// Cancels a sample; does nothing when there is none.
    pub fn cancel(&self, id: &RequestId) {
        if let Some(token) = self.open.lock().get(id) {
            token.cancel();
        }
    }

    pub fn cancel_all(&self) {
        self.all.cancel();
    }
}
