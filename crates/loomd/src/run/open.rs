//! Opens the thread of a turn, and starts the turn or the review.

use anyhow::{Result, anyhow, bail};
use loomd_client::protocol::{
    AskForApproval, JsonObject, JsonValue, ReviewStartParams, ReviewTarget, SandboxMode, SandboxPolicy,
    ThreadForkParams, ThreadResumeParams, ThreadStartParams, TurnStartParams,
};
use loomd_client::{Client, Input, Thread, Turn, fork, resume};

use super::providers::Providers;
use crate::find::find;

/// The thread of a turn, as requested on the command line. `None` is the configuration's or the thread's value.
pub struct ThreadRequest {
    pub choice: ThreadChoice,
    pub model: Option<String>,
    pub provider: Option<String>,
    pub cwd: String,
    pub sandbox: Option<SandboxMode>,
    pub ask: Option<AskForApproval>,
    /// The configuration overrides, for a server in another process.
    pub config: Option<JsonObject>,
    /// Whether tool calls without an item are to be shown, too.
    pub raw_events: bool,
}

/// Which thread. Names are as [`find`] takes them.
pub enum ThreadChoice {
    New { ephemeral: bool },
    Resume(String),
    Fork(String),
}

/// What a turn does.
pub enum TurnTask {
    Answer { input: Input, output_schema: Option<JsonValue> },
    Review(ReviewTarget),
}

/// The key of a thread's `config` that requests raw events, in loomd only.
const RAW_EVENTS: &str = "loomd.raw_events";

impl ThreadRequest {
    /// The overrides of the thread.
    fn config(&self) -> JsonObject {
        let mut config = self.config.clone().unwrap_or_default();
        if self.raw_events {
            config.insert(RAW_EVENTS.to_owned(), true.into());
        }
        config
    }

    /// Opens the thread. A stored one keeps its provider and its model unless others are named; `providers` are those
    /// of a server in this process, and one that cannot be used is an error.
    pub async fn open(&self, client: &Client, providers: Option<&Providers>) -> Result<Thread> {
        match &self.choice {
            ThreadChoice::New { ephemeral } => Ok(client
                .start_thread(ThreadStartParams {
                    model: self.model.clone(),
                    model_provider: self.provider.clone(),
                    cwd: Some(self.cwd.clone()),
                    approval_policy: self.ask.clone(),
                    sandbox: self.sandbox.map(Into::into),
                    ephemeral: ephemeral.then_some(true),
                    config: Some(self.config()),
                    ..ThreadStartParams::default()
                })
                .await?),
            ThreadChoice::Resume(name) => self.resume(client, name, providers).await,
            ThreadChoice::Fork(name) => {
                let parent = self.resume(client, name, providers).await?;
                let settings = parent.settings();
                let params = ThreadForkParams {
                    model: Some(settings.model.clone()),
                    model_provider: Some(settings.model_provider.clone()),
                    cwd: Some(self.cwd.clone()),
                    approval_policy: self.ask.clone(),
                    sandbox: self.sandbox.map(Into::into),
                    config: Some(self.config()),
                    exclude_turns: true,
                    ..fork(parent.id())
                };
                Ok(client.fork_thread(params).await?)
            }
        }
    }

    async fn resume(&self, client: &Client, name: &str, providers: Option<&Providers>) -> Result<Thread> {
        let id = find(client, name, Some(&self.cwd)).await?;
        let stored = client.read_thread(&id, false).await?.model_provider;
        let provider = self.provider.as_ref().unwrap_or(&stored);
        if let Some(Err(problem)) = providers.map(|providers| providers.check(provider)) {
            match self.provider {
                Some(_) => bail!("{problem}"),
                None => bail!(
                    "thread {id} cannot be resumed with its provider `{stored}`: {problem}. To use another one, name \
                     it with --provider, and its model with --model"
                ),
            }
        }
        let (model_provider, mut config) = (self.provider.clone(), self.config());
        // As configuration, so that the thread keeps its model; the parameter would replace both.
        let kept = *provider == stored;
        if kept {
            config.insert("model_provider".to_owned(), stored.into());
        }
        let params = ThreadResumeParams {
            model: self.model.clone(),
            model_provider: model_provider.filter(|_| !kept),
            cwd: Some(self.cwd.clone()),
            approval_policy: self.ask.clone(),
            sandbox: self.sandbox.map(Into::into),
            config: Some(config),
            // The turns are not shown.
            exclude_turns: true,
            ..resume(id)
        };
        let thread = client.resume_thread(params).await?;
        self.check_loaded(&thread)?;
        Ok(thread)
    }

    /// Refuses a thread that the server has loaded with another provider or sandbox: joining it changes neither.
    fn check_loaded(&self, thread: &Thread) -> Result<()> {
        let settings = thread.settings();
        let differs = |what: &str, flag: &str| {
            anyhow!("thread {} is in use in the server with another {what}; leave out {flag}", thread.id())
        };
        if self.provider.as_ref().is_some_and(|provider| *provider != settings.model_provider) {
            return Err(differs("provider", "--provider"));
        }
        let mode = match settings.sandbox {
            SandboxPolicy::ReadOnly { .. } => Some(SandboxMode::ReadOnly),
            SandboxPolicy::WorkspaceWrite { .. } => Some(SandboxMode::WorkspaceWrite),
            SandboxPolicy::DangerFullAccess => Some(SandboxMode::DangerFullAccess),
            SandboxPolicy::ExternalSandbox { .. } => None,
        };
        // An administrator may not allow the requested mode; then the thread has a stricter one.
        let is_wider = |wanted: SandboxMode| mode.is_none_or(|mode| width(mode) > width(wanted));
        if self.sandbox.is_some_and(is_wider) {
            return Err(differs("sandbox", "--sandbox"));
        }
        Ok(())
    }
}

/// How much a mode allows.
fn width(mode: SandboxMode) -> u8 {
    match mode {
        SandboxMode::ReadOnly => 0,
        SandboxMode::WorkspaceWrite => 1,
        SandboxMode::DangerFullAccess => 2,
    }
}

impl TurnTask {
    /// Starts the turn. The requested model and approvals are set again: a thread that was loaded keeps its own.
    pub async fn start(self, thread: &Thread, request: &ThreadRequest) -> Result<Turn> {
        let client = thread.client();
        match self {
            Self::Answer { input, output_schema } => {
                let settings = thread.settings();
                let params = TurnStartParams {
                    output_schema,
                    model: request.model.clone().filter(|model| *model != settings.model),
                    approval_policy: request.ask.clone().filter(|ask| *ask != settings.approval_policy),
                    ..thread.turn_params(input)
                };
                Ok(client.start_turn(params).await?)
            }
            Self::Review(target) => {
                let thread_id = thread.id().to_owned();
                Ok(client
                    .start_review(ReviewStartParams { thread_id, target, delivery: None, idempotency_key: None })
                    .await?
                    .turn)
            }
        }
    }
}
