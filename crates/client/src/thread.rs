//! A thread that is open: turns are started in it, and their events come here.

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

/// An open thread. Clones mean the same thread; dropping them leaves it open.
#[derive(Clone, Debug)]
pub struct Thread {
    client: Client,
    info: protocol::Thread,
    settings: Settings,
}

/// What a thread was opened with.
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

/// The answers to `thread/start`, `thread/resume` and `thread/fork` are types of their own with the same fields.
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

    /// The thread as it was when it was opened; a resumed one has its turns.
    pub fn info(&self) -> &protocol::Thread {
        &self.info
    }

    /// The settings that it was opened with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Params of a turn that says this, and changes no settings:
    /// `TurnStartParams { model: Some(m), ..thread.turn_params("hello") }`.
    pub fn turn_params(&self, input: impl Into<Input>) -> TurnStartParams {
        TurnStartParams {
            thread_id: self.id().to_owned(),
            input: input.into().0,
            cwd: None,
            approval_policy: None,
            approvals_reviewer: None,
            sandbox_policy: None,
            model: None,
            service_tier: None,
            effort: None,
            summary: None,
            personality: None,
            output_schema: None,
            collaboration_mode: None,
        }
    }

    /// Starts a turn.
    pub async fn send(&self, input: impl Into<Input>) -> Result<Turn, Error> {
        self.client.start_turn(self.turn_params(input)).await
    }

    /// Starts a turn and waits for its end.
    pub async fn run(&self, input: impl Into<Input>) -> Result<CompletedTurn, Error> {
        self.client.run_turn(self.turn_params(input)).await
    }

    /// Adds to what the user said, while a turn runs; gives the id of that turn.
    pub async fn steer(&self, input: impl Into<Input>) -> Result<String, Error> {
        let (thread_id, expected_turn_id) = (self.id().to_owned(), self.running()?);
        self.client.steer_turn(TurnSteerParams { thread_id, input: input.into().0, expected_turn_id }).await
    }

    /// Stops the turn that runs.
    pub async fn interrupt(&self) -> Result<(), Error> {
        self.client.interrupt_turn(self.id(), &self.running()?).await
    }

    /// A new thread with the same history.
    pub async fn fork(&self) -> Result<Self, Error> {
        self.client.fork_thread(fork(self.id())).await
    }

    /// Reviews changes, in this thread.
    pub async fn review(&self, target: ReviewTarget) -> Result<CompletedReview, Error> {
        let thread_id = self.id().to_owned();
        self.client.run_review(ReviewStartParams { thread_id, target, delivery: None }).await
    }

    /// The thread as it is now.
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

    /// Makes the history shorter. The work is a turn of its own, which this does not wait for.
    pub async fn compact(&self) -> Result<(), Error> {
        self.client.compact_thread(self.id()).await
    }

    /// Stops listening. When nobody listens any more the server puts the thread away, whatever it is doing.
    pub async fn unsubscribe(&self) -> Result<(), Error> {
        let params = ThreadUnsubscribeParams { thread_id: self.id().to_owned() };
        self.client.thread_unsubscribe(params).await.map(drop)
    }

    /// Events of this thread from now on.
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
    }
}
