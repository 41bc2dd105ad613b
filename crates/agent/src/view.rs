//! The state of a thread that other tasks can read: its wire form, its status, its running turn.

use loomd_protocol::{
    ReasoningEffort, ServerNotification, SessionSource, SubAgentSource, Thread as WireThread, ThreadActiveFlag,
    ThreadEnvironment, ThreadStatus, ThreadStatusChangedNotification,
};
use parking_lot::{Mutex, MutexGuard};

use crate::event_log::EventLog;
use crate::settings::Settings;

/// The id of the environment in which the commands of every thread run: this machine.
pub(crate) const LOCAL: &str = "local";

/// Where a thread's records go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// Nothing is written until the first user message.
    Pending,
    Stored,
    /// Nothing is ever written.
    Ephemeral,
}

/// The facts that determine a thread's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub loaded: bool,
    pub running: bool,
    /// The last turn failed.
    pub error: bool,
    /// The number of open approvals.
    pub approvals: usize,
    /// The number of open requests for user input.
    pub questions: usize,
}

impl Status {
    fn wire(self) -> ThreadStatus {
        let flags = [
            (self.approvals > 0).then_some(ThreadActiveFlag::WaitingOnApproval),
            (self.questions > 0).then_some(ThreadActiveFlag::WaitingOnUserInput),
        ];
        let active_flags: Vec<_> = flags.into_iter().flatten().collect();
        if !self.loaded {
            ThreadStatus::NotLoaded
        } else if self.running || !active_flags.is_empty() {
            ThreadStatus::Active { active_flags }
        } else if self.error {
            ThreadStatus::SystemError
        } else {
            ThreadStatus::Idle
        }
    }
}

/// The view of a loaded thread, shared with other tasks.
pub(crate) struct View(Mutex<ViewState>);

struct ViewState {
    thread: WireThread,
    persistence: Persistence,
    status: Status,
    /// The id of the turn that is running.
    turn: Option<String>,
    /// What its next turn will use.
    settings: Option<ShownSettings>,
}

/// The settings that the wire form of a thread shows.
#[derive(Clone)]
struct ShownSettings {
    model: String,
    effort: Option<ReasoningEffort>,
    cwd: String,
}

impl ViewState {
    fn dress(&self, thread: &mut WireThread) {
        // Agents that are addressed by a path take input of their parents only.
        let directed =
            matches!(&thread.source, SessionSource::SubAgent(SubAgentSource::ThreadSpawn { agent_path: Some(_), .. }));
        thread.can_accept_direct_input = Some(!directed);
        if let Some(settings) = &self.settings {
            thread.model = Some(settings.model.clone());
            thread.reasoning_effort.clone_from(&settings.effort);
            thread.cwd.clone_from(&settings.cwd);
        }
        thread.environments = Some(match &self.thread.environments {
            Some(none) if none.is_empty() => Vec::new(),
            _ => {
                let cwd = thread.cwd.clone();
                let runtime_workspace_roots = vec![cwd.clone()];
                vec![ThreadEnvironment { environment_id: LOCAL.into(), cwd, runtime_workspace_roots }]
            }
        });
    }

    fn status_changed(&self) -> ServerNotification {
        let (thread_id, status) = (self.thread.id.clone(), self.status.wire());
        ServerNotification::ThreadStatusChanged(ThreadStatusChangedNotification { thread_id, status })
    }
}

impl View {
    /// An idle thread.
    pub fn new(thread: WireThread, persistence: Persistence) -> Self {
        let status = Status { loaded: true, running: false, error: false, approvals: 0, questions: 0 };
        Self(Mutex::new(ViewState { thread, persistence, status, turn: None, settings: None }))
    }

    /// The thread without its turns: its status is the current one, the rest is as of its load.
    pub fn thread(&self) -> WireThread {
        let state = self.lock();
        let mut thread = WireThread { status: state.status.wire(), ..state.thread.clone() };
        state.dress(&mut thread);
        thread
    }

    /// Adds what only a loaded thread has, and its settings, to the wire form of the stored one.
    pub fn dress(&self, thread: &mut WireThread) {
        self.lock().dress(thread);
    }

    /// Shows other settings from now on.
    pub fn show_settings(&self, settings: &Settings) {
        self.lock().settings = Some(ShownSettings {
            model: settings.model.clone(),
            effort: settings.reasoning_effort.clone(),
            cwd: settings.cwd.clone(),
        });
    }

    pub fn status(&self) -> ThreadStatus {
        self.lock().status.wire()
    }

    pub fn path(&self) -> Option<String> {
        self.lock().thread.path.clone()
    }

    pub fn persistence(&self) -> Persistence {
        self.lock().persistence
    }

    /// The id of the turn that is running.
    pub fn running_turn(&self) -> Option<String> {
        self.lock().turn.clone()
    }

    pub fn set_running_turn(&self, turn_id: Option<String>) {
        self.lock().turn = turn_id;
    }

    /// Marks a pending thread as stored: its first record has been written.
    pub fn mark_stored(&self) {
        let mut state = self.lock();
        if state.persistence == Persistence::Pending {
            state.persistence = Persistence::Stored;
        }
    }

    /// Changes the facts of the status. Broadcasts `thread/status/changed` if the status is another one.
    pub async fn change(&self, events: &EventLog, change: impl FnOnce(&mut Status)) {
        events
            .broadcast_if(|| {
                let mut state = self.lock();
                let before = state.status.wire();
                change(&mut state.status);
                (state.status.wire() != before).then(|| state.status_changed())
            })
            .await;
    }

    /// Broadcasts `thread/status/changed` with the current status.
    pub async fn publish(&self, events: &EventLog) {
        events.broadcast_if(|| Some(self.lock().status_changed())).await;
    }

    fn lock(&self) -> MutexGuard<'_, ViewState> {
        self.0.lock()
    }
}
