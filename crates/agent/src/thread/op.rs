//! What can be requested of a loaded thread.

use loomd_hooks::SessionSource;
use loomd_protocol::{
    DeprecationNoticeNotification, Thread as WireThread, ThreadUnsubscribeStatus, Turn as WireTurn, TurnStartParams,
    UserInput,
};
use tokio::sync::oneshot;

use crate::event_sink::Subscriber;
use crate::host::ItemEnded;
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::turn::Work;

/// How an answer gets to whoever asked. It is called before any news that the answer causes.
pub type Reply<T> = Box<dyn FnOnce(Result<T, Refusal>) + Send + Sync>;

/// A thread that was opened for somebody.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    pub thread: WireThread,
    pub settings: Settings,
}

/// What can be asked of a loaded thread.
pub(crate) enum Op {
    Join {
        subscriber: Subscriber,
        turns: bool,
        reply: Reply<Opened>,
    },
    /// `left` is dropped when all that follows from it is done, the unloading of the thread included.
    Leave {
        subscriber: Subscriber,
        reply: Reply<ThreadUnsubscribeStatus>,
        left: oneshot::Sender<()>,
    },
    Disconnected(Subscriber),
    Rename {
        name: String,
        reply: Reply<()>,
    },
    RollBack {
        turns: u32,
        reply: Reply<WireThread>,
    },
    Elicit {
        change: Elicit,
        reply: Reply<u64>,
    },
    Show {
        turns: bool,
        reply: Reply<WireThread>,
    },
    StartTurn {
        params: Box<TurnStartParams>,
        reply: Reply<WireTurn>,
    },
    Steer {
        expected: String,
        input: Vec<UserInput>,
        reply: Reply<String>,
    },
    /// `turn_id` is empty for whatever runs.
    Interrupt {
        turn_id: String,
        reply: Reply<()>,
    },
    /// Work that takes the place of a running turn.
    Replace {
        work: Work,
        reply: Reply<WireTurn>,
    },
    /// A command that went on without its turn has ended.
    ItemEnded {
        ended: Box<ItemEnded>,
        /// Done when it has been shown.
        done: oneshot::Sender<()>,
    },
    /// Ends all commands in the background.
    CleanTerminals(Reply<()>),
    ShellCommand {
        command: String,
        reply: Reply<()>,
    },
    /// Notifications for the model are pending.
    RecordNotifications,
    /// The end, asked for by the server itself.
    Close(oneshot::Sender<()>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elicit {
    Begin,
    End,
}

/// How a thread came to be loaded, and what is told about it first.
pub(crate) enum LoadReason {
    Started {
        notices: Vec<DeprecationNoticeNotification>,
    },
    Forked {
        turns: Vec<loomd_protocol::Turn>,
    },
    Resumed {
        turns: Vec<loomd_protocol::Turn>,
    },
    /// By another agent.
    Spawned,
}

impl LoadReason {
    pub fn has_turns(&self) -> bool {
        matches!(self, Self::Forked { turns } | Self::Resumed { turns } if !turns.is_empty())
    }

    /// As hooks are told.
    pub fn source(&self) -> SessionSource {
        match self {
            Self::Resumed { .. } => SessionSource::Resume,
            Self::Started { .. } | Self::Forked { .. } | Self::Spawned => SessionSource::Startup,
        }
    }
}
