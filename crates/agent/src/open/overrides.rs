//! The client that opens a thread, and the settings that it names.

use loomd_protocol::{
    ApprovalsReviewer, AskForApproval, Budget, DynamicToolSpec, JsonObject, OnDisconnect, Personality, SandboxSetting,
    ServiceTier, ThreadForkParams, ThreadResumeParams, ThreadStartParams,
};

/// The identity of the client that opens a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    pub name: String,
    /// The user agent and the originator of its model calls.
    pub user_agent: String,
    pub originator: String,
    /// The protocol version, recorded with new threads and sent with model calls.
    pub protocol_version: String,
    /// It speaks the newer release of the protocol: its threads have the tools of that release.
    pub newer: bool,
    /// Whether it answers elicitations of the mode `openai/form`.
    pub openai_form: bool,
}

/// The settings that a client names when it opens a thread. What is `None` comes from the stored thread or the
/// configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadOverrides {
    pub model: Option<String>,
    pub model_provider: Option<String>,
    /// `Some(None)`: no tier, whatever is configured.
    pub service_tier: Option<Option<ServiceTier>>,
    /// Relative to the working directory of the process.
    pub cwd: Option<String>,
    pub approval_policy: Option<AskForApproval>,
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    pub sandbox: Option<SandboxSetting>,
    /// The id of a permission profile. Not together with `sandbox`.
    pub permissions: Option<String>,
    /// Values of the configuration for this thread, by key.
    pub config: JsonObject,
    pub base_instructions: Option<String>,
    pub developer_instructions: Option<String>,
    pub personality: Option<Personality>,
    pub dynamic_tools: Option<Vec<DynamicToolSpec>>,
    pub raw_events: bool,
    /// The thread has no machine to run commands on.
    pub without_environment: bool,
    /// A label of a new thread.
    pub thread_source: Option<String>,
    /// What a new thread may spend.
    pub budget: Option<Budget>,
    /// Labels that a node must have to run the thread.
    pub placement: Vec<String>,
    /// What a running turn does when the last client is disconnected.
    pub on_disconnect: Option<OnDisconnect>,
}

/// The params of the three methods that open a thread have these fields in common.
macro_rules! overrides_from {
    ($params:ident, $personality:expr, $dynamic_tools:expr, $thread_source:expr, $budget:expr, $placement:expr, $on_disconnect:expr, $raw_events:expr) => {
        impl From<&mut $params> for ThreadOverrides {
            fn from(params: &mut $params) -> Self {
                Self {
                    model: params.model.take(),
                    model_provider: params.model_provider.take(),
                    service_tier: params.service_tier.take(),
                    cwd: params.cwd.take(),
                    approval_policy: params.approval_policy.take(),
                    approvals_reviewer: params.approvals_reviewer,
                    sandbox: params.sandbox.take(),
                    permissions: params.permissions.take(),
                    config: params.config.take().unwrap_or_default(),
                    base_instructions: params.base_instructions.take(),
                    developer_instructions: params.developer_instructions.take(),
                    personality: $personality(&mut *params),
                    dynamic_tools: $dynamic_tools(&mut *params),
                    thread_source: $thread_source(&mut *params),
                    budget: $budget(&mut *params),
                    placement: $placement(&mut *params),
                    on_disconnect: $on_disconnect(&mut *params),
                    raw_events: $raw_events(params),
                    without_environment: false,
                }
            }
        }
    };
}

overrides_from!(
    ThreadStartParams,
    |params: &mut ThreadStartParams| params.personality,
    |params: &mut ThreadStartParams| params.dynamic_tools.take(),
    |params: &mut ThreadStartParams| params.thread_source.take(),
    |params: &mut ThreadStartParams| params.budget.take(),
    |params: &mut ThreadStartParams| std::mem::take(&mut params.placement),
    |params: &mut ThreadStartParams| params.on_disconnect,
    |params: &mut ThreadStartParams| params.experimental_raw_events
);
overrides_from!(
    ThreadResumeParams,
    |params: &mut ThreadResumeParams| params.personality,
    |_| None,
    |_| None,
    |_| None,
    |_| Vec::new(),
    |params: &mut ThreadResumeParams| params.on_disconnect,
    |_| { false }
);
overrides_from!(
    ThreadForkParams,
    |_| None,
    |_| None,
    |params: &mut ThreadForkParams| params.thread_source.take(),
    |_| None,
    |_| Vec::new(),
    |_| None,
    |_| false
);
