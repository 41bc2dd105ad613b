//! [`Thread`]: a handle to an open thread.

use loomd_protocol::{
    self as protocol, AskForApproval, ReasoningEffort, ReviewStartParams, ReviewTarget, SandboxPolicy, ServiceTier,
    ThreadForkParams, ThreadForkResponse, ThreadResumeParams, ThreadResumeResponse, ThreadSetNameParams,
    ThreadStartResponse, ThreadUnsubscribeParams, TurnStartParams, TurnSteerParams,
};

use crate::client::Client;
use crate::collect::CompletedTurn;
use crate::error::Error;
use crate::events::{Events, Filter};
use crate::input::Input;
use crate::review::CompletedReview;
use crate::turn::Turn;

/// A handle to an open thread. Clones refer to the same thread; dropping them does not close it.
#[derive(Clone, Debug)]
pub struct Thread {
    client: Client,
    info: protocol::Thread,
    settings: Settings,
}

/// The settings in the response that opened a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub model: String,
    pub model_provider: String,
    pub service_tier: Option<ServiceTier>,
    pub cwd: String,
    pub approval_policy: AskForApproval,
    pub sandbox: SandboxPolicy,
    pub reasoning_effort: Option<ReasoningEffort>,
}

/// `thread/start`, `thread/resume` and `thread/fork` have result types of their own with the same fields.
macro_rules! opened_by {
    ($($response:ty),*) => {
        $(
            impl From<(Client, $response)> for Thread {
                fn from((client, opened): (Client, $response)) -> Self {
                    let settings = Settings {
                        model: opened.model,
                        model_provider: opened.model_provider,
                        service_tier: opened.service_tier,
                        cwd: opened.cwd,
                        approval_policy: opened.approval_policy,
                        sandbox: opened.sandbox,
                        reasoning_effort: opened.reasoning_effort,
                    };
                    Self { client, info: opened.thread, settings }
                }
            }
        )*
    };
}

opened_by!(ThreadStartResponse, ThreadResumeResponse, ThreadForkResponse);

impl Thread {
    pub fn id(&self) -> &str {
        &self.info.id
    }

    /// The thread as it was when it was opened; a resumed one includes its turns.
    pub fn info(&self) -> &protocol::Thread {
        &self.info
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Params of a turn with this input that changes no settings: `TurnStartParams { model: Some(m),
    /// ..thread.turn_params("hello") }`.
    pub fn turn_params(&self, input: impl Into<Input>) -> TurnStartParams {
        TurnStartParams { thread_id: self.id().to_owned(), input: input.into().0, ..TurnStartParams::default() }
    }

    /// Starts a turn.
    pub async fn send(&self, input: impl Into<Input>) -> Result<Turn, Error> {
        self.client.start_turn(self.turn_params(input)).await
    }

    /// Starts a turn and waits for its end.
    pub async fn run(&self, input: impl Into<Input>) -> Result<CompletedTurn, Error> {
        self.client.run_turn(self.turn_params(input)).await
    }

    /// Adds input to the running turn and returns the turn's id.
    pub async fn steer(&self, input: impl Into<Input>) -> Result<String, Error> {
        let (thread_id, expected_turn_id) = (self.id().to_owned(), self.running()?);
        self.client
            .steer_turn(TurnSteerParams {
                thread_id,
                input: input.into().0,
                expected_turn_id,
                client_user_message_id: None,
            })
            .await
    }

    /// Interrupts the running turn.
    pub async fn interrupt(&self) -> Result<(), Error> {
        self.client.interrupt_turn(self.id(), &self.running()?).await
    }

    /// Starts a thread with the same history.
    pub async fn fork(&self) -> Result<Self, Error> {
        self.client.fork_thread(fork(self.id())).await
    }

    /// Reviews changes in this thread and waits for the result.
    pub async fn review(&self, target: ReviewTarget) -> Result<CompletedReview, Error> {
        let thread_id = self.id().to_owned();
        self.client.run_review(ReviewStartParams { thread_id, target, delivery: None, idempotency_key: None }).await
    }

    /// Reads the current state of the thread.
    pub async fn read(&self, include_turns: bool) -> Result<protocol::Thread, Error> {
        self.client.read_thread(self.id(), include_turns).await
    }

    pub async fn set_name(&self, name: impl Into<String>) -> Result<(), Error> {
        let params = ThreadSetNameParams { thread_id: self.id().to_owned(), name: name.into() };
        self.client.thread_name_set(params).await.map(drop)
    }

    pub async fn archive(&self) -> Result<(), Error> {
        self.client.archive_thread(self.id()).await
    }

    /// Starts a turn that shortens the history. Does not wait for that turn.
    pub async fn compact(&self) -> Result<(), Error> {
        self.client.compact_thread(self.id()).await
    }

    /// Ends this connection's subscription. The server unloads a thread that has no subscriber.
    pub async fn unsubscribe(&self) -> Result<(), Error> {
        let params = ThreadUnsubscribeParams { thread_id: self.id().to_owned() };
        self.client.thread_unsubscribe(params).await.map(drop)
    }

    /// A stream of the thread's events from now on.
    pub fn events(&self) -> Events {
        self.client.events(Filter::thread(self.id()))
    }

    fn running(&self) -> Result<String, Error> {
        self.client.hub().running(self.id()).ok_or_else(|| Error::NoActiveTurn { thread_id: self.id().to_owned() })
    }
}

/// Params of `thread/resume` that change no settings: `ThreadResumeParams { model: Some(m), ..resume(id) }`.
pub fn resume(thread_id: impl Into<String>) -> ThreadResumeParams {
    ThreadResumeParams {
        thread_id: thread_id.into(),
        history: None,
        path: None,
        model: None,
        model_provider: None,
        service_tier: None,
        cwd: None,
        approval_policy: None,
        approvals_reviewer: None,
        sandbox: None,
        config: None,
        base_instructions: None,
        developer_instructions: None,
        personality: None,
        exclude_turns: false,
        persist_extended_history: false,
        permissions: None,
        initial_turns_page: None,
        runtime_workspace_roots: None,
        after_event: None,
        on_disconnect: None,
    }
}

/// Params of `thread/fork` that change no settings.
pub fn fork(thread_id: impl Into<String>) -> ThreadForkParams {
    ThreadForkParams {
        thread_id: thread_id.into(),
        path: None,
        model: None,
        model_provider: None,
        service_tier: None,
        cwd: None,
        approval_policy: None,
        approvals_reviewer: None,
        sandbox: None,
        config: None,
        base_instructions: None,
        developer_instructions: None,
        ephemeral: false,
        exclude_turns: false,
        persist_extended_history: false,
        defer_goal_continuation: false,
        permissions: None,
        last_turn_id: None,
        before_turn_id: None,
        runtime_workspace_roots: None,
        thread_source: None,
        attach_to_source: false,
        idempotency_key: None,
    }
}
