//! The times and bounds of the protocol, in milliseconds of a node's own clock.

/// The times and bounds of the protocol. All nodes have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a session lives at the database without being renewed.
    pub session_ttl: u64,
    /// How much earlier than `session_ttl` a node counts its session as dead. Two nodes never own a thread at one time
    /// while no node's clock runs slower than the database's by more than `clock_margin / session_ttl`.
    pub clock_margin: u64,
    /// How often a session is renewed.
    pub renewal: u64,
    /// How long the answer to an operation of the database is waited for.
    pub db_timeout: u64,
    /// How long a request may look for the owner of its thread. A request that runs or was forwarded has no limit.
    pub request_timeout: u64,
    /// How long a request waits for others of its thread that were forwarded to a node that is no longer the owner.
    pub order_timeout: u64,
    /// The pause before something that failed is tried again.
    pub retry: u64,
    /// How often a node looks whether a thread that its clients follow has an owner.
    pub follow_poll: u64,
    /// How many followed threads are looked at at one time.
    pub max_polls: usize,
    /// Requests of a node that are not answered; more are refused.
    pub max_requests: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            session_ttl: 15_000,
            clock_margin: 500,
            renewal: 5_000,
            db_timeout: 3_000,
            request_timeout: 60_000,
            order_timeout: 5_000,
            retry: 200,
            follow_poll: 1_000,
            max_polls: 32,
            max_requests: 8_192,
        }
    }
}
