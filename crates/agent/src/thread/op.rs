//! The requests that a loaded thread serves.

use std::sync::Arc;

use loomd_hooks::SessionSource;
use loomd_mcp::ServerSet;
use loomd_protocol::{
    DeprecationNoticeNotification, JsonValue, Level, OnDisconnect, QueuedSubmission, ResponseItem,
    Thread as WireThread, ThreadBackgroundTerminal, ThreadGoal, ThreadSampleParams, ThreadSampleResponse,
    ThreadUnsubscribeStatus, Turn as WireTurn, TurnStartParams, UserInput,
};
use loomd_store::RequestKey;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::confinement::CommandPolicy;
use crate::event::{EventId, MissedEvents};
use crate::event_sink::Subscriber;
use crate::goals::GoalChange;
use crate::host::ItemEnded;
use crate::inbox::UserMessageInput;
use crate::refusal::Refusal;
use crate::settings::{Profile, Settings};
use crate::turn::Work;
use crate::turn_cx::StepSettings;
use crate::turn_notes::UnfinishedTurn;
use crate::turn_origin::TurnOrigin;

/// Sends the result of a request. Called before the events that the request causes are published.
pub type Reply<T> = Box<dyn FnOnce(Result<T, Refusal>) + Send + Sync>;

/// Reads the MCP servers of a thread from the configuration.
pub(crate) type ReloadMcpServers = Arc<dyn Fn(&Profile, &Settings) -> Result<ServerSet, Refusal> + Send + Sync>;

/// A thread that was opened, with its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    pub thread: WireThread,
    pub settings: Settings,
    /// The instruction files in force.
    pub instruction_sources: Arc<[String]>,
    /// The event right after which the thread is as it is shown.
    pub event_id: Option<EventId>,
    /// What becomes of the events after the last one that the client has, if it named that.
    pub missed: Option<MissedEvents>,
    /// The items of the running turn that have not completed.
    pub open_items: Vec<String>,
}

/// A thread that was cut back, without its turns, and the cursors that page backwards from the newest of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Reverted {
    pub thread: WireThread,
    pub turns_backwards_cursor: Option<String>,
    pub items_backwards_cursor: Option<String>,
}

/// A request to a loaded thread.
pub(crate) enum Op {
    Join {
        subscriber: Subscriber,
        turns: bool,
        /// The last event that the client has.
        after: Option<EventId>,
        on_disconnect: Option<OnDisconnect>,
        reply: Reply<Opened>,
    },
    /// `left` is dropped when all that follows from it is done, the unloading of the thread included.
    Leave {
        subscriber: Subscriber,
        /// Whether the last subscriber to leave ends the running turn and unloads the thread at once.
        ends: bool,
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
        /// The thread, and the event right after which it is as it is shown.
        reply: Reply<(WireThread, EventId)>,
    },
    /// `chosen` is what the permission profile of the params stands for.
    StartTurn {
        params: Box<TurnStartParams>,
        chosen: Option<Box<CommandPolicy>>,
        /// The release of the protocol that the client speaks.
        level: Level,
        key: Option<RequestKey>,
        origin: TurnOrigin,
        reply: Reply<WireTurn>,
    },
    /// Changes settings without a turn. The input of the params is empty.
    UpdateSettings {
        params: Box<TurnStartParams>,
        chosen: Option<Box<CommandPolicy>>,
        reply: Reply<()>,
    },
    /// Changes settings for the later model calls of a turn; false when it is not running.
    UpdateTurn {
        turn_id: String,
        change: StepSettings,
        reply: Reply<bool>,
    },
    /// Cuts off a turn and all later ones.
    Revert {
        before: String,
        reply: Reply<Reverted>,
    },
    /// Adds items to the conversation, without a turn.
    Inject {
        items: Vec<ResponseItem>,
        reply: Reply<()>,
    },
    /// Lists the commands in the background.
    ListTerminals(Reply<Vec<ThreadBackgroundTerminal>>),
    /// Ends a command in the background; false when there is none.
    EndTerminal {
        process_id: u32,
        reply: Reply<bool>,
    },
    Steer {
        expected: String,
        input: UserMessageInput,
        key: Option<RequestKey>,
        reply: Reply<String>,
    },
    /// An empty `turn_id` means the running turn, whichever it is.
    Interrupt {
        turn_id: String,
        /// Refused when no turn is running, instead of answered at once.
        strict: bool,
        reply: Reply<()>,
    },
    SetGoal {
        change: GoalChange,
        reply: Reply<ThreadGoal>,
    },
    ClearGoal(Reply<bool>),
    Enqueue {
        client_id: String,
        input: Vec<UserInput>,
        reply: Reply<QueuedSubmission>,
    },
    /// Starts the turn of a queued message: of the first one unless `message` names another.
    StartQueued {
        message: Option<String>,
        reply: Reply<WireTurn>,
    },
    /// One model call of which the thread keeps nothing.
    Sample {
        params: Box<ThreadSampleParams>,
        cancel: CancellationToken,
        reply: Reply<ThreadSampleResponse>,
    },
    /// The user allows an action that the reviewer denied.
    ApproveDenied {
        event: JsonValue,
        reply: Reply<()>,
    },
    /// A message of another agent.
    AgentMessage {
        message: Box<ResponseItem>,
        /// Whether it begins a turn when none is running.
        start: bool,
        origin: TurnOrigin,
        reply: Reply<()>,
    },
    /// Starts a turn in place of the running one.
    Replace {
        work: Work,
        key: Option<RequestKey>,
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
        key: Option<RequestKey>,
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
        /// The last event that the client has.
        after: Option<EventId>,
    },
    /// By another agent.
    Spawned,
    /// With the turn that another process left unfinished.
    Recovered(Box<UnfinishedTurn>),
}

impl LoadReason {
    pub fn has_turns(&self) -> bool {
        matches!(self, Self::Forked { turns } | Self::Resumed { turns, .. } if !turns.is_empty())
    }

    /// The last event that the client has.
    pub fn after(&self) -> Option<EventId> {
        match self {
            Self::Resumed { after, .. } => *after,
            Self::Started { .. } | Self::Forked { .. } | Self::Spawned | Self::Recovered(_) => None,
        }
    }

    /// The source of the `SessionStart` hooks.
    pub fn source(&self) -> SessionSource {
        match self {
            Self::Resumed { .. } | Self::Recovered(_) => SessionSource::Resume,
            Self::Started { .. } | Self::Forked { .. } | Self::Spawned => SessionSource::Startup,
        }
    }
}
