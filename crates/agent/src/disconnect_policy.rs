//! What a running turn does when the last client of its thread is disconnected.

use loomd_protocol::OnDisconnect;
use parking_lot::Mutex;

/// The policy of a thread, which its clients may change. Shared by the thread's task and its turns.
#[derive(Debug, Default)]
pub(crate) struct DisconnectPolicy(Mutex<OnDisconnect>);

impl DisconnectPolicy {
    pub fn new(policy: OnDisconnect) -> Self {
        Self(Mutex::new(policy))
    }

    pub fn get(&self) -> OnDisconnect {
        *self.0.lock()
    }

    pub fn set(&self, policy: OnDisconnect) {
        *self.0.lock() = policy;
    }
}
