//! What goes into a node, and what comes out of it.

/// A thread, by the bits of its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thread(pub u128);

/// One start of a node's process. A restarted process has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

/// A session of a node at the database. A session that was lost is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session {
    pub node: NodeId,
    pub number: u32,
}

/// What identifies a client's request wherever, and however often, it is sent: its idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(pub u64);

/// An operation of a node at the database, to tell its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// Something that happened to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// A client of this node wants something done on a thread.
    Request { key: RequestKey, thread: Thread },
    /// A client of this node follows a thread: when its owner dies, this node takes it over.
    Follow { thread: Thread },
    /// The last client of this node that followed a thread is gone.
    Unfollow { thread: Thread },
    /// Another node has sent a message.
    Peer { from: NodeId, message: PeerMessage },
    /// The database has answered.
    Db { op: OpId, reply: DbReply },
    /// The node is to end: it lets its threads go.
    Drain,
}

/// Something that a node wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Db {
        op: OpId,
        request: DbOp,
    },
    Send {
        to: NodeId,
        message: PeerMessage,
    },
    /// Answers a client's request.
    Answer {
        key: RequestKey,
        answer: Answer,
    },
    /// Shows the record of a request to the thread's subscribers. It is stored.
    Show {
        thread: Thread,
        epoch: u64,
        seq: u64,
        key: RequestKey,
    },
    /// The thread is this node's: its turn may be taken up.
    Own {
        thread: Thread,
        epoch: u64,
    },
    /// The thread is no longer this node's: its turn stops, its processes end, nothing more is shown.
    Stop {
        thread: Thread,
    },
    /// The node has let everything go and may exit.
    Drained,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is stored, as the record with this number.
    Done { seq: u64 },
    /// The node is draining: the client sends it to another one, with the same key.
    Moved,
    /// It could not be done in time. It may still be done; sending it again with the same key does it once.
    Unavailable,
    /// Too many requests are unanswered. It was not done.
    Busy,
}

/// What nodes say to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerMessage {
    /// Do this: you own the thread.
    Forward {
        key: RequestKey,
        thread: Thread,
    },
    Answered {
        key: RequestKey,
        answer: Answer,
    },
    /// The thread is not mine; nothing was done.
    NotOwner {
        key: RequestKey,
    },
}

/// An operation of the database. Each is atomic there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DbOp {
    Register {
        session: Session,
    },
    /// Succeeds while the session has not expired.
    Renew {
        session: Session,
    },
    /// Ends a session; its leases are free.
    End {
        session: Session,
    },
    /// Takes a lease that is free, or whose session has expired or is this one, with a new token. The epoch grows.
    Take {
        thread: Thread,
        session: Session,
    },
    /// Tells the holder of a lease.
    Lookup {
        thread: Thread,
    },
    /// Appends under a token, all or nothing.
    Append {
        thread: Thread,
        token: u64,
        keys: Vec<RequestKey>,
    },
    /// Lets a lease go, if the token is still its own.
    Release {
        thread: Thread,
        token: u64,
    },
}

/// The database's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DbReply {
    /// Of `Register`, `Renew`, `End` and `Release`.
    Ok,
    /// Of `Take`: the lease, and the requests whose records the thread has, with their numbers.
    Taken { token: u64, epoch: u64, done: Vec<(RequestKey, u64)> },
    /// Of `Take` and `Lookup`: another session has the lease.
    Held { holder: Holder },
    /// Of `Lookup`.
    Free,
    /// Of `Append`: the number of the first record.
    Appended { first: u64 },
    /// Of `Append` and `Release`: the token is no longer valid; nothing was done.
    Stale,
    /// Of `Renew` and `Take`: the session of this node has expired.
    NoSession,
    /// The database refused for another reason, and did nothing.
    Failed,
}

/// Who has a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    pub session: Session,
}
