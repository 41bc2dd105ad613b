//! [`Adapter`]: the settings with which prompts are evaluated.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loomd_client::Endpoint;
use loomd_client::protocol::{ClientInfo, Personality, ReasoningEffort, ReasoningSummary, SandboxMode};

use crate::approvals::ApprovalPolicy;
use crate::auth::Auth;
use crate::error::EvaluateError;
use crate::evaluate;
use crate::limits::{Limits, TokenUsage};
use crate::mcp::McpServer;
use crate::output::Output;
use crate::prompt::Prompt;
use crate::session::Session;
use crate::workspace::Workspace;

/// Evaluates prompts by an app-server. Every evaluation has a connection of its own, and with a program a process of
/// its own.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use loomd_adapter::{Adapter, Endpoint, Limits, Prompt, Section, Session, Text};
///
/// let adapter = Adapter::new(Endpoint::spawn("loomd")).cwd("/path/to/project");
/// let prompt = Prompt::new("demo", "list")
///     .section(Section::new("task", "Task", "List the files and summarise them."))
///     .build()?;
/// let mut session = Session::new();
/// let response = adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()).await?;
/// println!("{}", response.text);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Adapter {
    pub(crate) endpoint: Endpoint,
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<ReasoningEffort>,
    pub(crate) summary: Option<ReasoningSummary>,
    pub(crate) personality: Option<Personality>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) workspace: Option<Arc<Workspace>>,
    pub(crate) sandbox: Option<SandboxMode>,
    pub(crate) approvals: ApprovalPolicy,
    pub(crate) auth: Option<Auth>,
    pub(crate) mcp_servers: BTreeMap<String, McpServer>,
    pub(crate) reuse_thread: bool,
    pub(crate) ephemeral: bool,
    pub(crate) client: ClientInfo,
    pub(crate) startup_timeout: Duration,
    pub(crate) silence_timeout: Option<Duration>,
    pub(crate) interrupt_grace: Duration,
}

/// The result of an evaluation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Response<O> {
    /// `namespace/key` of the prompt.
    pub prompt: String,
    pub output: O,
    /// The model's final message, which the output is decoded from.
    pub text: String,
    /// What the turn used, in all of its model calls.
    pub usage: Option<TokenUsage>,
    /// What the thread has used in all of its turns.
    pub thread_usage: Option<TokenUsage>,
    pub thread_id: String,
    pub turn_id: String,
    /// All changes to files, as one unified diff.
    pub diff: Option<String>,
}

impl Adapter {
    /// The server, with its own choice of model, sandbox and account, and no approvals.
    pub fn new(endpoint: impl Into<Endpoint>) -> Self {
        Self {
            endpoint: endpoint.into(),
            model: None,
            effort: None,
            summary: None,
            personality: None,
            cwd: None,
            workspace: None,
            sandbox: None,
            approvals: ApprovalPolicy::default(),
            auth: None,
            mcp_servers: BTreeMap::new(),
            reuse_thread: false,
            ephemeral: false,
            client: ClientInfo {
                name: env!("CARGO_PKG_NAME").into(),
                title: None,
                version: env!("CARGO_PKG_VERSION").into(),
            },
            startup_timeout: Duration::from_secs(10),
            silence_timeout: Some(Duration::from_secs(10 * 60)),
            interrupt_grace: Duration::from_secs(5),
        }
    }

    /// Evaluates a prompt: renders it, runs a turn with it and decodes the model's final message.
    ///
    /// The session gets the events, what tools changed, and the thread. Dropping the future interrupts the turn and
    /// ends a process that was started for it; the session keeps what was committed until then.
    pub async fn evaluate<O: Output>(
        &self,
        prompt: &Prompt,
        session: &mut Session,
        limits: Limits,
    ) -> Result<Response<O>, EvaluateError> {
        evaluate::evaluate(self, prompt, session, &limits).await
    }

    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    pub fn effort(mut self, effort: ReasoningEffort) -> Self {
        self.effort = Some(effort);
        self
    }

    pub fn summary(mut self, summary: ReasoningSummary) -> Self {
        self.summary = Some(summary);
        self
    }

    pub fn personality(mut self, personality: Personality) -> Self {
        self.personality = Some(personality);
        self
    }

    /// The working directory of the thread, an absolute path; by default this process's.
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Works in a workspace, in place of [`cwd`](Self::cwd).
    pub fn workspace(mut self, workspace: Arc<Workspace>) -> Self {
        self.workspace = Some(workspace);
        self
    }

    pub fn sandbox(mut self, sandbox: SandboxMode) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    pub fn approvals(mut self, policy: ApprovalPolicy) -> Self {
        self.approvals = policy;
        self
    }

    /// Signs in before the thread is opened.
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = Some(auth);
        self
    }

    /// Adds an MCP server. Its tools are named `mcp__NAME__TOOL`, which no [`Tool`](crate::Tool) can be.
    pub fn mcp_server(mut self, name: impl Into<String>, server: McpServer) -> Self {
        self.mcp_servers.insert(name.into(), server);
        self
    }

    /// Continues the thread of the session's last evaluation, if it has the same working directory, workspace and
    /// tools and can be resumed. Otherwise a new thread is started.
    pub fn reuse_thread(mut self, reuse: bool) -> Self {
        self.reuse_thread = reuse;
        self
    }

    /// Stores nothing of new threads.
    pub fn ephemeral(mut self, ephemeral: bool) -> Self {
        self.ephemeral = ephemeral;
        self
    }

    /// How this program is named in `initialize`.
    pub fn client(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        (self.client.name, self.client.version) = (name.into(), version.into());
        self
    }

    /// The time for connecting and the handshake; 10 seconds by default.
    pub fn startup_timeout(mut self, timeout: Duration) -> Self {
        self.startup_timeout = timeout;
        self
    }

    /// How long a turn may go without any event, apart from calls of tools, before it counts as lost; 10 minutes by
    /// default.
    pub fn silence_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.silence_timeout = timeout.into();
        self
    }

    /// How long an interrupted turn may take to end before the connection is closed, and a process may take to exit
    /// before it is killed; 5 seconds by default.
    pub fn interrupt_grace(mut self, grace: Duration) -> Self {
        self.interrupt_grace = grace;
        self
    }
}
