//! Signing in, and the thread of an evaluation: the session's last one, or a new one.

use std::path::PathBuf;
use std::time::Duration;

use loomd_client::protocol::{DynamicToolSpec, ThreadResumeParams, ThreadStartParams};
use loomd_client::{Client, Thread, resume};
use sha2::{Digest, Sha256};
use tracing::debug;

use crate::adapter::Adapter;
use crate::error::{Failure, FailureKind, Phase};
use crate::hex::hex;
use crate::limits::TokenUsage;
use crate::mcp;
use crate::prompt::Rendered;
use crate::session::{Epoch, Session, ThreadState};

/// How long the server may take for a response. Starting a thread may start MCP servers.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Where the thread works.
pub(super) struct Place {
    cwd: PathBuf,
    workspace_fingerprint: Option<String>,
}

impl Place {
    /// Fails with a message if the settings are invalid.
    pub(super) fn of(adapter: &Adapter) -> Result<Self, String> {
        if let Some(name) = adapter.mcp_servers.keys().find(|name| !mcp::is_name(name)) {
            return Err(format!("invalid name of an MCP server, `{name}`: expected letters, digits, `_` and `-`"));
        }
        let (cwd, workspace_fingerprint) = match (&adapter.workspace, &adapter.cwd) {
            (Some(workspace), _) => (workspace.path().to_owned(), Some(workspace.fingerprint().to_owned())),
            (None, Some(cwd)) => (cwd.clone(), None),
            (None, None) => {
                let cwd = std::env::current_dir().map_err(|error| format!("no working directory: {error}"))?;
                (cwd, None)
            }
        };
        if !cwd.is_absolute() {
            return Err(format!("invalid `cwd`: {} is not absolute", cwd.display()));
        }
        if cwd.to_str().is_none() {
            return Err(format!("invalid `cwd`: {} is not UTF-8", cwd.display()));
        }
        Ok(Self { cwd, workspace_fingerprint })
    }

    fn text(&self) -> String {
        self.cwd.to_string_lossy().into_owned()
    }
}

/// An open thread, and what it has used if that is known.
pub(super) struct OpenedThread {
    pub(super) thread: Thread,
    pub(super) used: Option<TokenUsage>,
}

pub(super) async fn open(
    adapter: &Adapter,
    client: &Client,
    session: &Session,
    epoch: &Epoch,
    place: &Place,
    rendered: &Rendered,
) -> Result<OpenedThread, Box<Failure>> {
    if let Some(auth) = &adapter.auth {
        let failed = |error: &dyn std::fmt::Display| Failure::new(Phase::Request, FailureKind::Login, error);
        let params = auth.login().await.map_err(|error| failed(&error))?;
        client.account_login_start(params).await.map_err(|error| failed(&error))?;
    }
    let tools: Vec<_> = rendered.tools.iter().map(|tool| tool.spec()).collect();
    let tools_fingerprint = fingerprint(&tools);
    let stored = session.latest::<ThreadState>().filter(|stored| {
        adapter.reuse_thread
            && stored.cwd == place.cwd
            && stored.workspace_fingerprint == place.workspace_fingerprint
            && stored.tools_fingerprint == tools_fingerprint
    });
    if let Some(stored) = stored {
        match client.resume_thread(resume_params(adapter, place, &stored.thread_id)).await {
            Ok(thread) => return Ok(OpenedThread { thread, used: stored.used }),
            Err(error) => debug!(%error, thread_id = stored.thread_id, "cannot resume; starting a new thread"),
        }
    }
    let started = client.start_thread(start_params(adapter, place, tools)).await;
    let thread = started.map_err(|error| Failure::request(FailureKind::Thread, &error))?;
    epoch.seed(ThreadState {
        thread_id: thread.id().to_owned(),
        cwd: place.cwd.clone(),
        workspace_fingerprint: place.workspace_fingerprint.clone(),
        tools_fingerprint,
        used: None,
    });
    Ok(OpenedThread { thread, used: None })
}

fn start_params(adapter: &Adapter, place: &Place, tools: Vec<DynamicToolSpec>) -> ThreadStartParams {
    ThreadStartParams {
        model: adapter.model.clone(),
        cwd: Some(place.text()),
        approval_policy: Some(adapter.approvals.wire()),
        sandbox: adapter.sandbox.map(Into::into),
        config: mcp::config(&adapter.mcp_servers),
        personality: adapter.personality,
        ephemeral: Some(adapter.ephemeral),
        dynamic_tools: (!tools.is_empty()).then_some(tools),
        ..ThreadStartParams::default()
    }
}

fn resume_params(adapter: &Adapter, place: &Place, thread_id: &str) -> ThreadResumeParams {
    ThreadResumeParams {
        model: adapter.model.clone(),
        cwd: Some(place.text()),
        approval_policy: Some(adapter.approvals.wire()),
        sandbox: adapter.sandbox.map(Into::into),
        config: mcp::config(&adapter.mcp_servers),
        personality: adapter.personality,
        ..resume(thread_id)
    }
}

/// A hash of the tools, whatever their order.
fn fingerprint(tools: &[DynamicToolSpec]) -> String {
    let mut texts: Vec<_> = tools.iter().map(|tool| serde_json::to_string(tool).unwrap_or_default()).collect();
    texts.sort_unstable();
    hex(&Sha256::digest(texts.join("\n")))
}
