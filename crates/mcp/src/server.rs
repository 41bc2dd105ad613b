//! One server, shared by all threads that have it: started when it is needed, stopped when it is idle, started again
//! after it has died.

use std::sync::Arc;
use std::time::Duration;

use loomd_protocol::{JsonObject, JsonValue, McpAuthStatus};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::backoff::Backoff;
use crate::caller::Caller;
use crate::config::{Authorization, Endpoint, ServerConfig};
use crate::connection::Connection;
use crate::error::{CallError, StartError};
use crate::inbound::Users;
use crate::limits::IDLE;
use crate::listing::Listing;
use crate::result::CallResult;
use crate::servers::Shared;

/// A server. Its connection is closed when the last handle is dropped.
pub struct Server {
    config: ServerConfig,
    shared: Arc<Shared>,
    users: Arc<Users>,
    state: watch::Sender<State>,
    /// When it was last used.
    used: Arc<Mutex<Instant>>,
    backoff: Arc<Mutex<Backoff>>,
    /// Starts the server, then stops it when it is idle.
    task: Mutex<Option<AbortOnDropHandle<()>>>,
}

#[derive(Clone)]
enum State {
    /// Not running: not yet, or no longer because it was idle.
    Stopped(Option<Arc<Listing>>),
    Starting(Option<Arc<Listing>>),
    Running(Arc<Connection>),
    /// It could not be started: not at first, or not again.
    Failed(StartError, Option<Arc<Listing>>),
}

/// What a server is doing.
#[derive(Clone, Debug)]
pub enum Phase {
    Stopped,
    Starting,
    Running,
    Failed(StartError),
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The raw name.
    pub tool: String,
    pub arguments: Option<JsonObject>,
    pub meta: JsonObject,
    pub timeout: Duration,
    /// What the server is told about the sandbox before the call, if it wants to know.
    pub sandbox_state: Option<JsonValue>,
}

/// A listing of resources or of their templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resources {
    Resources,
    Templates,
}

impl Resources {
    pub fn method(self) -> &'static str {
        match self {
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// The member of a page that holds its entries.
    pub fn member(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }
}

/// A user of a server, until it is dropped.
pub struct Attached {
    users: Arc<Users>,
    user: Arc<dyn Caller>,
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.users.remove(&self.user);
    }
}

impl Server {
    pub(crate) fn new(config: ServerConfig, shared: Arc<Shared>) -> Self {
        Self {
            config,
            shared,
            users: Arc::default(),
            state: watch::Sender::new(State::Stopped(None)),
            used: Arc::new(Mutex::new(Instant::now())),
            backoff: Arc::default(),
            task: Mutex::default(),
        }
    }

    pub fn name(&self) -> &str {
        &self.config.name
    }

    pub fn config(&self) -> &ServerConfig {
        &self.config
    }

    pub fn phase(&self) -> Phase {
        match &*self.state.borrow() {
            State::Stopped(_) => Phase::Stopped,
            State::Starting(_) => Phase::Starting,
            State::Running(connection) if connection.is_closed() => Phase::Stopped,
            State::Running(_) => Phase::Running,
            State::Failed(error, _) => Phase::Failed(error.clone()),
        }
    }

    /// Makes a thread the receiver of elicitations that belong to no call, while it is the only user.
    pub fn attach(&self, user: Arc<dyn Caller>) -> Attached {
        self.users.add(Arc::clone(&user));
        Attached { users: Arc::clone(&self.users), user }
    }

    /// What is known of the server, also while it is stopped; `None` when it has never started.
    pub fn listing(&self) -> Option<Arc<Listing>> {
        match &*self.state.borrow() {
            State::Running(connection) => Some(connection.listing()),
            State::Stopped(listing) | State::Starting(listing) | State::Failed(_, listing) => listing.clone(),
        }
    }

    /// Starts the server unless it is running, and waits until it has started or failed. One that has failed is tried
    /// again, except when it failed often and recently.
    pub async fn start(&self) -> Result<Arc<Listing>, StartError> {
        let connection = self.connection().await?;
        connection.refresh(self.config.startup_timeout).await;
        Ok(connection.listing())
    }

    /// Tells a server that wants to know it the sandbox state, if it has changed.
    pub async fn send_sandbox_state(&self, state: &JsonValue) -> Result<(), CallError> {
        let connection = self.connection().await.map_err(CallError::NotStarted)?;
        connection.send_sandbox_state(state, self.config.startup_timeout).await
    }

    /// Lists the tools again. Starts the server unless it is running.
    pub async fn relist(&self) -> Result<Arc<Listing>, CallError> {
        let connection = self.used().await?;
        let tools = connection.list_tools(self.config.startup_timeout).await?;
        connection.set_tools(tools);
        Ok(connection.listing())
    }

    /// Calls a tool. The server is told when the future is dropped.
    pub async fn call_tool(&self, call: ToolCall, caller: Arc<dyn Caller>) -> Result<CallResult, CallError> {
        const METHOD: &str = "tools/call";
        let connection = self.connection().await.map_err(CallError::NotStarted)?;
        if let Some(state) = &call.sandbox_state {
            connection.send_sandbox_state(state, call.timeout).await?;
        }
        let mut params = JsonObject::new();
        params.insert("name".into(), call.tool.into());
        if let Some(arguments) = call.arguments {
            params.insert("arguments".into(), arguments.into());
        }
        if !call.meta.is_empty() {
            params.insert("_meta".into(), call.meta.into());
        }
        let result = connection.request(METHOD, Some(params.into()), call.timeout, Some(caller)).await;
        *self.used.lock() = Instant::now();
        let result = result?;
        self.backoff.lock().succeeded();
        CallResult::decode(result).map_err(|reason| CallError::Unexpected { method: METHOD, reason })
    }

    /// One page of a listing, and the cursor of the next.
    pub async fn list(
        &self,
        what: Resources,
        cursor: Option<&str>,
        timeout: Duration,
    ) -> Result<(Vec<JsonValue>, Option<String>), CallError> {
        let connection = self.used().await?;
        connection.page(what.method(), what.member(), cursor, timeout).await
    }

    /// All pages of a listing.
    pub async fn list_all(&self, what: Resources, timeout: Duration) -> Result<Vec<JsonValue>, CallError> {
        let connection = self.used().await?;
        connection.list_all(what.method(), what.member(), timeout).await
    }

    /// The contents of a resource.
    pub async fn read_resource(&self, uri: &str, timeout: Duration) -> Result<JsonValue, CallError> {
        let connection = self.used().await?;
        connection.request("resources/read", Some(json!({ "uri": uri })), timeout, None).await
    }

    /// How requests are authorized. May make requests.
    pub async fn auth_status(&self) -> McpAuthStatus {
        match &self.config.endpoint {
            Endpoint::Stdio(_) => McpAuthStatus::Unsupported,
            Endpoint::Http(server) if server.has_own_authorization() => McpAuthStatus::BearerToken,
            Endpoint::Http(server) => {
                let credentials = match server.authorization {
                    Authorization::OAuth => &self.shared.oauth,
                    Authorization::Account => &self.shared.account,
                };
                credentials.status(&self.config.name, server).await
            }
        }
    }

    async fn used(&self) -> Result<Arc<Connection>, CallError> {
        *self.used.lock() = Instant::now();
        self.connection().await.map_err(CallError::NotStarted)
    }

    /// The live connection, after a start if there is none. A start goes on when its callers have been cancelled.
    async fn connection(&self) -> Result<Arc<Connection>, StartError> {
        let mut states = self.state.subscribe();
        let mut tried = false;
        loop {
            let state = states.borrow_and_update().clone();
            match state {
                State::Running(connection) if !connection.is_closed() => return Ok(connection),
                State::Starting(_) => {
                    tried = true;
                    // The sender is ours.
                    let _ = states.changed().await;
                    continue;
                }
                State::Failed(error, _) if tried => return Err(error),
                State::Running(connection) => {
                    if tried {
                        return Err(StartError::Handshake("the server ended right after its start".into()));
                    }
                    let mut backoff = self.backoff.lock();
                    if connection.is_proven() {
                        backoff.succeeded();
                    }
                    backoff.failed(std::time::Instant::now());
                    drop(backoff);
                    self.begin(Some(connection.listing()), None)?;
                }
                State::Failed(error, listing) => self.begin(listing, Some(error))?,
                State::Stopped(listing) => self.begin(listing, None)?,
            }
            tried = true;
        }
    }

    /// Starts the server in a task of its own, unless another caller has just done so.
    fn begin(&self, listing: Option<Arc<Listing>>, last: Option<StartError>) -> Result<(), StartError> {
        let mut task = self.task.lock();
        let needed = match &*self.state.borrow() {
            State::Starting(_) => false,
            State::Running(connection) => connection.is_closed(),
            State::Stopped(_) | State::Failed(..) => true,
        };
        if !needed {
            return Ok(());
        }
        let backoff = self.backoff.lock();
        if let Some(wait) = backoff.wait(std::time::Instant::now()) {
            let last = last.unwrap_or_else(|| StartError::Handshake("the server ended".into()));
            return Err(StartError::BackingOff { failures: backoff.failures(), wait, last: Box::new(last) });
        }
        drop(backoff);
        self.state.send_replace(State::Starting(listing.clone()));
        let (state, used, backoff) = (self.state.clone(), Arc::clone(&self.used), Arc::clone(&self.backoff));
        let (config, shared, users) = (self.config.clone(), Arc::clone(&self.shared), Arc::clone(&self.users));
        let work = async move {
            match Connection::open(&config, &shared, users).await {
                Ok(connection) => {
                    *used.lock() = Instant::now();
                    state.send_replace(State::Running(Arc::clone(&connection)));
                    stop_when_idle(connection, &state, &used).await;
                }
                Err(error) => {
                    tracing::warn!(server = config.name, %error, "an MCP server could not be started");
                    // A login or a variable mends the others, and they cost nothing.
                    if !matches!(error, StartError::NotLoggedIn | StartError::Settings(_) | StartError::InvalidName(_))
                    {
                        backoff.lock().failed(std::time::Instant::now());
                    }
                    state.send_replace(State::Failed(error, listing));
                }
            }
        };
        *task = Some(AbortOnDropHandle::new(tokio::spawn(work)));
        Ok(())
    }
}

/// Waits until a connection was not used for [`IDLE`], then drops it. Its tools stay known.
async fn stop_when_idle(connection: Arc<Connection>, state: &watch::Sender<State>, used: &Mutex<Instant>) {
    loop {
        let idle_at = *used.lock() + IDLE;
        tokio::select! {
            () = tokio::time::sleep_until(idle_at) => {}
            () = connection.closed() => return,
        }
        if connection.is_busy() {
            *used.lock() = Instant::now();
        } else if used.lock().elapsed() >= IDLE {
            let listing = connection.listing();
            state.send_replace(State::Stopped(Some(listing)));
            return;
        }
    }
}
