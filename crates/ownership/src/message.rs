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
    pub number: u64,
}

impl Session {
    /// The session as one number, the node in the upper 64 bits.
    pub fn to_bits(self) -> u128 {
        (u128::from(self.node.0) << 64) | u128::from(self.number)
    }

    /// The session that [`Session::to_bits`] has made the number of.
    pub fn from_bits(bits: u128) -> Self {
        Self { node: NodeId((bits >> 64) as u64), number: bits as u64 }
    }
}

/// What identifies a request wherever, and however often, it is sent. Made by the node that the client is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(pub u128);

/// An operation of a node at the database, to tell its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// Who may do a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// Only the owner does it; when there is none, this node becomes it.
    Owner,
    /// The owner does it if there is one; else it is done here without owning the thread.
    OwnerIfAny,
}

/// Something that happened to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// A client of this node wants something done on a thread. `repeatable`: doing it twice under its key does it once.
    Request { key: RequestKey, thread: Thread, need: Need, repeatable: bool },
    /// A request that was told to [`Action::Run`] has been answered, whatever the answer was. A thread that the request
    /// has loaded was reported as [`Input::Loaded`] before.
    Finished { key: RequestKey },
    /// The executor has loaded a thread that this node owns: it stays owned until it is unloaded.
    Loaded { thread: Thread },
    /// The executor has unloaded a thread, could not load one that was taken over, or found by a refused append that the
    /// lease is not its own. Not needed after [`Action::Stop`]. A [`Action::Run`] that is on its way may load the thread
    /// again: it stays owned until the request is finished.
    Unloaded { thread: Thread },
    /// A client of this node follows a thread: when its owner dies, this node takes it over.
    Follow { thread: Thread },
    /// The last client of this node that followed a thread is gone.
    Unfollow { thread: Thread },
    /// The database has an unfinished turn of a thread without a live owner: it is taken over if that is still so.
    Abandoned { thread: Thread },
    /// Another node has sent a message.
    Peer { from: NodeId, message: PeerMessage },
    /// The connection to another node has ended, or there is none to send on: what was sent to it and not answered is of
    /// unknown outcome. To be given before anything is sent on the next connection.
    Lost { node: NodeId },
    /// The outcome of one forwarded request is unknown: what carried it has ended, and not the whole connection to the
    /// node.
    LostRequest { key: RequestKey },
    /// The database has answered. An operation that fails without an answer needs no input: it times out.
    Db { op: OpId, reply: DbReply },
    /// The node is to end: it lets its threads go.
    Drain,
}

/// Something that a node wants done. Actions are done in order; those that take time must not hold up the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Do an operation at the database, and give its answer as [`Input::Db`].
    Db { op: OpId, request: DbOp },
    /// Send a message to another node, a [`PeerMessage::Forward`] with the request's parameters, a
    /// [`PeerMessage::Answered`] with its result. A forward that was certainly not sent may be reported as
    /// [`PeerMessage::NotOwner`] of that node, any other loss as [`Input::Lost`].
    Send { to: NodeId, message: PeerMessage },
    /// Do a request here. `epoch` is `None` where the thread is not owned, which is for [`Need::OwnerIfAny`] only.
    /// [`Input::Finished`] follows, always.
    Run { key: RequestKey, thread: Thread, epoch: Option<u64> },
    /// A client's request ends without having been run to its end here or elsewhere.
    Answer { key: RequestKey, answer: Answer },
    /// The thread is this node's, until [`Action::Stop`]. `taken_over`: because of [`Input::Follow`] or
    /// [`Input::Abandoned`]; the executor loads it and takes up its turn, and gives [`Input::Loaded`], or
    /// [`Input::Unloaded`] when it cannot.
    Own { thread: Thread, epoch: u64, taken_over: bool },
    /// The thread is no longer this node's: its turn stops, its processes end, nothing more is shown or written. Comes
    /// once after each [`Action::Own`], also for a thread that is not loaded.
    Stop { thread: Thread },
    /// The node drains: the executor stops the thread after its running step and gives [`Input::Unloaded`]. Comes again
    /// when the thread is loaded after that; nothing to do when it is not loaded.
    LetGo { thread: Thread },
    /// The node has let everything go and may exit.
    Drained,
}

/// How a request ended that was not run to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The node is draining and nothing was done: the client sends it to another one.
    Moved,
    /// No owner could be found in time. Nothing was done.
    Unavailable,
    /// The owner was lost while it had the request, which is not repeatable or found no other owner in time. It may have
    /// been done.
    Unknown,
    /// Too many requests are unanswered. Nothing was done.
    Busy,
}

/// What nodes send to each other. What is sent on one connection arrives in order, until the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerMessage {
    /// Do this: you own the thread.
    Forward { key: RequestKey, thread: Thread, need: Need, repeatable: bool },
    /// The request was done, whatever its result.
    Answered { key: RequestKey },
    /// The thread is not mine; nothing was done.
    NotOwner { key: RequestKey },
}

/// An operation of the database. Each is atomic there. One that was given up may still be done later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DbOp {
    /// Begins a session. Answered with `Ok`.
    Register { session: Session },
    /// Lets a session live one lifetime from now, if it has not expired. Answered with `Ok` or `NoSession`.
    Renew { session: Session },
    /// Ends a session; its leases are free. Answered with `Ok`.
    End { session: Session },
    /// Takes a lease that is free, or whose session has expired or is this one. The epoch grows by one, always. Answered
    /// with `Taken`, `Held` or `NoSession`.
    Take { thread: Thread, session: Session },
    /// Tells the live holder of a lease. Answered with `Held` or `Free`.
    Lookup { thread: Thread },
    /// Frees a lease that has this session and epoch; else does nothing. Answered with `Ok` in both cases.
    Release { thread: Thread, session: Session, epoch: u64 },
}

/// The database's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DbReply {
    /// Of `Register`, `Renew`, `End` and `Release`.
    Ok,
    /// Of `Take`: the lease is the session's, under this epoch.
    Taken { epoch: u64 },
    /// Of `Take` and `Lookup`: this live session has the lease.
    Held { session: Session },
    /// Of `Lookup`: no live session has the lease.
    Free,
    /// Of `Renew` and `Take`: the session of this node has expired.
    NoSession,
    /// The database refused for another reason, and did nothing.
    Failed,
}
