//! The state of a loaded thread, which its task alone owns.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use loomd_skills::WatchGuard;
use loomd_store::rollout::SessionMeta;
use loomd_store::{Reader, Store, ThreadId, WorkStore};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::memory::{Memory, UnwrittenItem};
use super::running_turn::{QueuedTurn, RunningTurn};
use crate::additional_context::SentContext;
use crate::busy::Busy;
use crate::disconnect_policy::DisconnectPolicy;
use crate::event_log::EventLog;
use crate::goals::GoalCx;
use crate::guard::Guard;
use crate::host::ThreadHost;
use crate::let_go::LetGo;
use crate::realtime::RealtimeSession;
use crate::realtime_link::RealtimeLink;
use crate::services::Services;
use crate::settings::{Profile, Settings};
use crate::tools::{ThreadTools, ToolSource};
use crate::turn_notes::Notes;
use crate::view::View;

pub(crate) struct Thread {
    pub id: ThreadId,
    pub settings: Settings,
    pub profile: Arc<Profile>,
    /// The first record of its rollout.
    pub meta: Box<SessionMeta>,
    /// The approvals and permissions that it has been granted.
    pub guard: Arc<Guard>,
    pub tools: Arc<ThreadTools>,
    pub tool_sources: Arc<[Arc<dyn ToolSource>]>,
    pub host: Arc<dyn ThreadHost>,
    pub view: Arc<View>,
    pub store: Arc<dyn Store>,
    /// Its records; `None` when it is ephemeral.
    pub reader: Option<Arc<dyn Reader>>,
    pub services: Arc<Services>,
    pub events: Arc<EventLog>,
    /// `None` while a turn is running, and after the thread was idle for a while.
    pub memory: Option<Box<Memory>>,
    /// The model of the last turn and its instructions. They stay the same as long as the model does, for the
    /// provider's prefix cache.
    pub instructions: Option<(String, Arc<str>)>,
    pub running: Option<RunningTurn>,
    /// Ends of items that could not be recorded yet.
    pub unwritten: Vec<UnwrittenItem>,
    /// The goal of the thread.
    pub goals: Arc<GoalCx>,
    /// Whether the last turn was interrupted; `None` when only the rollout knows.
    pub interrupted: Option<bool>,
    /// The context of clients that the model was sent.
    pub sent_context: SentContext,
    /// The last turn that ended while the thread was loaded.
    pub last_turn: Option<String>,
    /// When the goal may start its next turn, if it has to wait.
    pub wake_at: Option<Instant>,
    /// The thread is being unloaded and starts no more turns.
    pub closing: bool,
    /// Turns that wait for the running one.
    pub queued: VecDeque<QueuedTurn>,
    pub realtime: Option<RealtimeSession>,
    /// The state of the realtime session that turns use.
    pub realtime_link: Arc<RealtimeLink>,
    pub busy: Arc<Busy>,
    /// The number of open elicitations outside of the protocol, as clients count them.
    pub elicitations: u64,
    /// How long it stays loaded once it has neither subscribers nor turns; `None` as long as it is not to be unloaded.
    pub unload_delay: Option<Duration>,
    /// The instruction files in force.
    pub instruction_sources: Arc<[String]>,
    /// The requests that must not be carried out twice, of a thread that is never stored.
    pub ephemeral_keys: WorkStore,
    /// Where its unfinished turn is noted; `None` where that is not done.
    pub notes: Option<Notes>,
    /// Notes that another process has left, to be removed when a turn starts.
    pub stale_notes: Option<Notes>,
    /// The keys and ids of requests whose turn was taken up, as [`super::answered`] looks for them in the rollout.
    pub taken_up: HashSet<String>,
    /// The calls that a turn which was taken up has yet to show.
    pub recovered_calls: Vec<String>,
    /// What a running turn does when the last client is disconnected.
    pub disconnect: Arc<DisconnectPolicy>,
    /// How it is given up for another process.
    pub let_go: Arc<LetGo>,
    /// Dropped when the thread has been unloaded, for a request that waits for that.
    pub left: Option<oneshot::Sender<()>>,
    /// Its skills are watched as long as this is held.
    pub watched: Option<WatchGuard<ThreadId>>,
}
