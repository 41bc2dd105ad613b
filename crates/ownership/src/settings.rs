//! The times and bounds of the protocol, in milliseconds of a node's own clock.

/// The times and bounds of the protocol. All nodes have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a session lives without being renewed.
    pub session_ttl: u64,
    /// How often a session is renewed.
    pub renewal: u64,
    /// How long the answer to an operation of the database is waited for.
    pub db_timeout: u64,
    /// How long the answer of another node is waited for.
    pub forward_timeout: u64,
    /// How long a request may take in all.
    pub request_timeout: u64,
    /// The pause before something that failed is tried again.
    pub retry: u64,
    /// How often a node tries to take over a thread that its clients follow.
    pub follow_poll: u64,
    /// Requests of a node that are not answered; more are refused.
    pub max_requests: usize,
    /// Requests of one append.
    pub max_batch: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            session_ttl: 15_000,
            renewal: 5_000,
            db_timeout: 3_000,
            forward_timeout: 5_000,
            request_timeout: 60_000,
            retry: 200,
            follow_poll: 1_000,
            max_requests: 1024,
            max_batch: 16,
        }
    }
}
