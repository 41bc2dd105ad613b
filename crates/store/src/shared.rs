//! What a store offers that several nodes share: the sessions of the nodes, and which of them owns a thread.
//!
//! A node owns the threads that it has loaded. The database decides: a session lives as long as it is renewed by the
//! database's clock, and a thread can be taken from a session that has expired, never from one that is live. What the
//! owner writes of a thread, records and notes, is refused once the thread is another's.

use uuid::Uuid;

use crate::{Answer, ThreadId};

/// Sessions and ownership. Every method is one round trip at most, unless it says otherwise.
pub trait SharedStore: Send + Sync {
    /// Registers a session of this node, which lives for [`SharedStore::session_ttl`] from now on unless it is renewed.
    /// Operations on threads that the node does not own use it, too.
    fn register(&self, session: Uuid, node: NodeFacts) -> Answer<'_, ()>;

    /// Renews a session. `false` when it has expired or ended: it never lives again.
    fn renew(&self, session: Uuid) -> Answer<'_, bool>;

    /// Shows other nodes that a session takes no more threads.
    fn drain(&self, session: Uuid) -> Answer<'_, ()>;

    /// Ends a session. Threads that it still owns are free at once.
    fn end(&self, session: Uuid) -> Answer<'_, ()>;

    /// How long a session lives without being renewed.
    fn session_ttl(&self) -> std::time::Duration;

    /// Takes a thread, stored or not, that no live session owns, or that this session owns already, with a greater
    /// epoch. From then on its writers and notes are those of this ownership, and fail with
    /// [`crate::Error::StaleLease`] when it has ended.
    fn take(&self, thread: ThreadId, session: Uuid) -> Answer<'_, Taking>;

    /// The live session that owns a thread.
    fn owner(&self, thread: ThreadId) -> Answer<'_, Option<Uuid>>;

    /// Ends the ownership with an epoch, if it is still this session's. Nothing may be written under it any more.
    fn release(&self, thread: ThreadId, session: Uuid, epoch: u64) -> Answer<'_, ()>;

    /// Makes writers and notes of a thread fail from now on, without asking the database: the node counts its session
    /// as expired.
    fn abandon(&self, thread: ThreadId);

    /// The registered nodes, also those whose session has expired.
    fn nodes(&self) -> Answer<'_, Vec<NodeRow>>;

    /// Some threads with notes about an unfinished turn that no live session owns.
    fn abandoned(&self) -> Answer<'_, Vec<ThreadId>>;

    /// Figures of the connections to the database.
    fn pool(&self) -> PoolFigures;
}

/// What other nodes know of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// Where other nodes reach it; `None` for one that takes no requests of others.
    pub url: Option<String>,
    pub labels: Vec<String>,
}

/// The outcome of [`SharedStore::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taking {
    Taken {
        epoch: u64,
    },
    /// A live session of another node owns the thread, or another process is changing it.
    Held {
        session: Uuid,
    },
    /// The session of this node has expired.
    NoSession,
}

/// A node as the others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    pub session: Uuid,
    pub facts: NodeFacts,
    pub draining: bool,
    /// Threads that it owns.
    pub threads: i64,
    /// Until the session expires, by the database's clock. Negative when it has.
    pub expires_in_ms: i64,
}

/// Connections to the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolFigures {
    /// Open ones, in use or not.
    pub connections: usize,
    /// The most there may be.
    pub limit: usize,
    /// Callers that wait for one.
    pub waiting: usize,
}
