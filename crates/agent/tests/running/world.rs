//! Threads with a store, a scripted model and one subscriber, without a server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loomd_agent::{
    Approval, Audience, Event, EventId, EventKind, EventSink, Metering, NewThread, Opened, Ownership, Profile, Refusal,
    Reply, Resolve, ResolvedSettings, SendFuture, Services, Settings, Subscriber, Threads,
};
use loomd_config::{LoadRequest, Overrides};
use loomd_exec::Environment;
use loomd_model::{Catalogue, Http, Identity, Provider};
use loomd_protocol::{
    AbsolutePathBuf, ApprovalsReviewer, AskForApproval, Level, ModeKind, SandboxPolicy, ServerNotification, Turn,
    TurnStartParams, TurnSteerParams, UserInput,
};
use loomd_store::{FileStore, Options, Store, ThreadId};
use loomd_testkit::{Home, ScriptedModel, TIMEOUT};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use crate::faulty::FaultyStore;

pub const ME: Subscriber = Subscriber(1);

pub struct World {
    pub model: ScriptedModel,
    pub home: Home,
    pub threads: Threads,
    pub received: Arc<ReceivedEvents>,
    pub store: Arc<FaultyStore>,
    pub metering: Arc<Metering>,
}

/// The event sink of the tests: all notifications, in order, as method and params.
#[derive(Default)]
pub struct ReceivedEvents {
    notifications: Mutex<Vec<(String, Value)>>,
    ids: Mutex<Vec<EventId>>,
    arrived: Notify,
    /// The next publisher of a notification with this method panics.
    pub breaks_at: Mutex<Option<&'static str>>,
}

impl World {
    pub async fn new() -> Self {
        Self::with("").await
    }

    /// A world with additional configuration.
    pub async fn with(config: &str) -> Self {
        Self::shared(config, None).await
    }

    /// One of several processes that share the threads.
    pub async fn shared(config: &str, ownership: Option<Arc<dyn Ownership>>) -> Self {
        let model = ScriptedModel::start().await;
        let home = Home::new(&model).with("sandbox_mode = \"danger-full-access\"").with(config);
        let received = Arc::new(ReceivedEvents::default());
        let files = FileStore::new(Options { home: home.path(), sqlite_home: None });
        let store = Arc::new(FaultyStore { files, full: Arc::default(), is_away: Arc::default() });
        let mut environment = Environment::of_this_process();
        // Commands must not read the shell profile of the user who runs the test.
        environment.set("HOME", home.user().to_string_lossy());
        let services = Services::new(home.path(), Http::new(&|_| None), environment).with_ownership(ownership);
        let metering = Arc::clone(&services.metering);
        let threads = Threads::new(
            Arc::clone(&store) as Arc<dyn Store>,
            Arc::clone(&received) as Arc<dyn EventSink>,
            Arc::new(services),
        );
        Self { model, home, threads, received, store, metering }
    }

    fn resolved(&self) -> ResolvedSettings {
        let home = AbsolutePathBuf::new(self.home.path()).expect("an absolute path");
        let flags = Overrides::default();
        let loaded = loomd_config::load(&LoadRequest::new(&home, &flags)).expect("a configuration");
        let config = loomd_config::resolve(&loaded).expect("a configuration");
        let provider = Provider::new(config.config.model_provider(), &config.provider, &|_| None, None);
        ResolvedSettings {
            budget: None,
            placement: Vec::new(),
            on_disconnect: Default::default(),
            settings: Settings {
                model: "scripted-model".into(),
                model_provider: config.config.model_provider().to_owned(),
                service_tier: None,
                cwd: self.home.work().to_string_lossy().into_owned(),
                approval_policy: AskForApproval::Never,
                approvals_reviewer: ApprovalsReviewer::User,
                sandbox: SandboxPolicy::DangerFullAccess,
                permissions: None,
                profile: None,
                reasoning_effort: None,
                summary: None,
                personality: None,
                mode: ModeKind::Default,
                mode_instructions: None,
            },
            profile: Arc::new(Profile {
                provider,
                catalogue: Arc::new(Catalogue::bundled()),
                base_instructions: None,
                developer_instructions: None,
                dynamic_tools: Vec::new(),
                mcp_servers: Default::default(),
                thread_config: Default::default(),
                raw_events: false,
                config_folders: vec![self.home.path()],
                extensions: Default::default(),
                has_environment: true,
                newer_tools: false,
                openai_form: false,
                client: "test".into(),
                identity: Identity::default(),
                config,
            }),
            originator: "test".into(),
            cli_version: "0".into(),
            thread_source: None,
            notices: Vec::new(),
        }
    }

    pub fn resolve(&self) -> Resolve {
        let resolved = self.resolved();
        Box::new(|_| Ok(resolved))
    }

    /// A new thread.
    pub async fn start(&self, ephemeral: bool) -> ThreadId {
        let new = NewThread { id: ThreadId::new(), project_id: None, resolved: self.resolved(), ephemeral };
        let opened: Opened = answered(async |reply| self.threads.start(new, ME, reply)).await.expect("a thread");
        opened.thread.id.parse().expect("an id")
    }

    /// Starts a turn with a text, or steers the running one. Returns the turn's id.
    pub async fn say(&self, id: ThreadId, text: &str) -> Result<String, Refusal> {
        self.say_with(id, json!({ "input": input(text) })).await
    }

    /// Like [`Self::say`], with params in addition to the thread's id.
    pub async fn say_with(&self, id: ThreadId, mut params: Value) -> Result<String, Refusal> {
        params["threadId"] = json!(id.to_string());
        let params: TurnStartParams = serde_json::from_value(params).expect("params");
        let turn: Turn = answered(async |reply| self.threads.start_turn(params, Level::V0_118, reply).await).await?;
        Ok(turn.id)
    }

    /// Starts a turn with a text and waits for its end. Returns its status.
    pub async fn ask(&self, id: ThreadId, text: &str) -> String {
        let turn = self.say(id, text).await.expect("a turn");
        self.ended(&turn).await
    }

    pub async fn steer(&self, id: ThreadId, turn: &str, text: &str) -> Result<String, Refusal> {
        let params = TurnSteerParams {
            thread_id: id.to_string(),
            expected_turn_id: turn.into(),
            input: input(text),
            client_user_message_id: None,
        };
        answered(async |reply| self.threads.steer(params, None, reply).await).await
    }

    pub async fn interrupt(&self, id: ThreadId, turn: &str) -> Result<(), Refusal> {
        answered(async |reply| self.threads.interrupt(id, turn.into(), Level::V0_118, reply).await).await
    }

    pub async fn compact(&self, id: ThreadId) -> String {
        let turn: Result<Turn, _> = answered(async |reply| self.threads.compact(id, None, reply).await).await;
        turn.expect("a turn").id
    }

    /// Waits for the end of a turn. Returns its status.
    pub async fn ended(&self, turn: &str) -> String {
        let end = self.received.find("turn/completed", |params| params["turn"]["id"] == *turn).await;
        end["turn"]["status"].as_str().expect("a status").to_owned()
    }

    /// The texts of the user's messages in the last model call.
    pub async fn last_call(&self) -> Vec<String> {
        let calls = self.model.calls();
        let call = calls.last().expect("a call");
        call.user_texts().into_iter().filter(|text| !text.starts_with('<')).map(Into::into).collect()
    }

    /// The turns of a stored thread, each with the types of its items.
    pub async fn stored(&self, id: ThreadId) -> Vec<(String, Vec<String>)> {
        let thread = self.threads.read(id, true, "").await.expect("a stored thread");
        let kinds = |turn: &Turn| turn.items.iter().map(|item| word(&json!(item)["type"])).collect();
        thread.turns.iter().map(|turn| (word(&json!(turn.status)), kinds(turn))).collect()
    }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub fn input(text: &str) -> Vec<UserInput> {
    vec![UserInput::Text { text: text.into(), text_elements: Vec::new() }]
}

/// The reply to a request. Panics when there is none.
pub async fn answered<T: Send + 'static>(ask: impl AsyncFnOnce(Reply<T>)) -> Result<T, Refusal> {
    let (answer, answered) = oneshot::channel();
    let reply: Reply<T> = Box::new(|result| _ = answer.send(result));
    in_time("answer", async {
        ask(reply).await;
        answered.await.expect("every request is answered")
    })
    .await
}

pub async fn in_time<F: Future>(what: &str, work: F) -> F::Output {
    tokio::time::timeout(TIMEOUT, work).await.unwrap_or_else(|_| panic!("no {what} within {TIMEOUT:?}"))
}

/// Polls a condition until it holds.
pub async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let looking = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    in_time(what, looking).await;
}

impl ReceivedEvents {
    fn note(&self, notification: &ServerNotification) {
        let json = notification.encode().expect("a notification");
        let mut told: Value = serde_json::from_slice(&json).expect("JSON");
        let told = (word(&told["method"]), told["params"].take());
        let breaks = self.breaks_at.lock().unwrap_or_else(PoisonError::into_inner).take_if(|method| *method == told.0);
        assert_eq!(breaks, None, "as the test wants it");
        self.notifications.lock().unwrap_or_else(PoisonError::into_inner).push(told);
        self.arrived.notify_waiters();
    }

    /// The ids of all events so far.
    pub fn ids(&self) -> Vec<EventId> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All notifications so far.
    pub fn all(&self) -> Vec<(String, Value)> {
        self.notifications.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The params of all notifications of a method so far.
    pub fn of(&self, method: &str) -> Vec<Value> {
        self.all().into_iter().filter(|(told, _)| told == method).map(|(_, params)| params).collect()
    }

    /// Waits for the first notification of a method that `wanted` accepts, also an earlier one.
    pub async fn find(&self, method: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let found = async {
            loop {
                let arrived = self.arrived.notified();
                if let Some(params) = self.of(method).into_iter().find(&wanted) {
                    return params;
                }
                arrived.await;
            }
        };
        match tokio::time::timeout(TIMEOUT, found).await {
            Ok(params) => params,
            Err(_) => panic!("no {method} like this within {TIMEOUT:?}: {:#?}", self.all()),
        }
    }
}

impl EventSink for ReceivedEvents {
    fn send<'a>(&'a self, _: Audience<'a>, event: &'a Event) -> SendFuture<'a> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).push(event.id);
        if let EventKind::Notification(notification) = &event.kind {
            self.note(notification);
        }
        Box::pin(std::future::ready(()))
    }

    fn broadcast(&self, notification: ServerNotification) -> SendFuture<'_> {
        self.note(&notification);
        Box::pin(std::future::ready(()))
    }

    fn notify<'a>(&'a self, _: &'a [Subscriber], notification: ServerNotification) -> SendFuture<'a> {
        self.note(&notification);
        Box::pin(std::future::ready(()))
    }

    fn withdraw(&self, _: &Approval) {}
}
