//! The requests that a loaded thread serves.

use std::sync::Arc;

use loomd_hooks::SessionSource;
use loomd_mcp::ServerSet;
use loomd_protocol::{
    DeprecationNoticeNotification, Thread as WireThread, ThreadUnsubscribeStatus, Turn as WireTurn, TurnStartParams,
    UserInput,
};
use tokio::sync::oneshot;

use crate::event_sink::Subscriber;
use crate::host::ItemEnded;
use crate::refusal::Refusal;
use crate::settings::{Profile, Settings};
use crate::turn::Work;

/// Sends the result of a request. Called before the events that the request causes are published.
pub type Reply<T> = Box<dyn FnOnce(Result<T, Refusal>) + Send + Sync>;

/// Reads the MCP servers of a thread from the configuration.
pub(crate) type ReloadMcpServers = Arc<dyn Fn(&Profile, &Settings) -> Result<ServerSet, Refusal> + Send + Sync>;

/// A thread that was opened, with its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    pub thread: WireThread,
    pub settings: Settings,
}

/// A request to a loaded thread.
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
    /// An empty `turn_id` means the running turn, whichever it is.
    Interrupt {
        turn_id: String,
        reply: Reply<()>,
    },
    /// Starts a turn in place of the running one.
    Replace {
        work: Work,
        reply: Reply<WireTurn>,
    },
    /// A command in the background has ended.
    ItemEnded {
        ended: Box<ItemEnded>,
        /// Sent when the end has been published.
        done: oneshot::Sender<()>,
    },
    /// Kills all commands in the background.
    CleanTerminals(Reply<()>),
    ShellCommand {
        command: String,
        reply: Reply<()>,
    },
    /// Reads the MCP servers of the thread again.
    ReloadMcpServers(ReloadMcpServers),
    /// Replies at once; what becomes of it is published.
    Realtime {
        request: RealtimeRequest,
        reply: Reply<()>,
    },
    /// Notifications for the model are pending.
    RecordNotifications,
    /// Unloads the thread, on the server's behalf.
    Close(oneshot::Sender<()>),
}

/// A request about the realtime session of a thread.
pub(crate) enum RealtimeRequest {
    Start {
        prompt: String,
        session_id: Option<String>,
    },
    AppendText(String),
    /// 16 bit PCM in base64.
    AppendAudio(String),
    Stop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elicit {
    Begin,
    End,
}

/// Why a thread is loaded. Decides which events are published first.
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

    /// The source of the `SessionStart` hooks.
    pub fn source(&self) -> SessionSource {
        match self {
            Self::Resumed { .. } => SessionSource::Resume,
            Self::Started { .. } | Self::Forked { .. } | Self::Spawned => SessionSource::Startup,
        }
    }
}
