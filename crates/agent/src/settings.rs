//! What a thread runs on.

use loomd_protocol::{
    ApprovalsReviewer, AskForApproval, DeprecationNoticeNotification, DynamicToolSpec, ReasoningEffort, SandboxPolicy,
    ServiceTier,
};
use loomd_store::StoredThread;
use loomd_store::rollout::TurnContext;

use crate::Refusal;

/// The settings that clients see.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub model: String,
    pub model_provider: String,
    pub service_tier: Option<ServiceTier>,
    pub cwd: String,
    pub approval_policy: AskForApproval,
    pub approvals_reviewer: ApprovalsReviewer,
    pub sandbox: SandboxPolicy,
    pub reasoning_effort: Option<ReasoningEffort>,
}

/// What is known of a stored thread when its settings are worked out.
#[derive(Clone, Copy, Debug)]
pub struct Basis<'a> {
    pub thread: &'a StoredThread,
    /// The settings of its last turn.
    pub last_turn: Option<&'a TurnContext>,
}

/// Settings, and what goes into a new thread's record of itself.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub settings: Settings,
    pub base_instructions: Option<String>,
    pub dynamic_tools: Option<Vec<DynamicToolSpec>>,
    /// The name and version under which the thread is started.
    pub originator: String,
    pub cli_version: String,
    /// What the client should know about its configuration; told when the thread has been announced.
    pub notices: Vec<DeprecationNoticeNotification>,
}

/// Works out the settings of a thread from what is stored of it, if anything is.
pub type Resolve = Box<dyn FnOnce(Option<Basis<'_>>) -> Result<Resolved, Refusal> + Send>;
