//! Threads opened from a configuration folder and run on the rehearsal, without any server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::sync::Arc;
use std::time::Duration;

use loomd_agent::{
    Agent, AgentOptions, Approval, Audience, Caller, ClientIdentity, Event, EventKind, EventSink, ForkThread, Opened,
    Refusal, Reply, ResumeThread, SendFuture, StartThread, Subscriber, ThreadOverrides,
};
use loomd_config::{ConfigSources, LiveSources, Overrides};
use loomd_model::Http;
use loomd_protocol::{
    AbsolutePathBuf, Level, SandboxMode, SandboxPolicy, ServerNotification, ThreadItem, Turn, TurnStatus,
};
use loomd_store::{FileStore, Options};
use loomd_telemetry::Telemetry;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(30);

/// A front end that keeps the notifications of its one subscriber.
struct Recorded(mpsc::UnboundedSender<ServerNotification>);

impl EventSink for Recorded {
    fn send<'a>(&'a self, _: Audience<'a>, event: &'a Event) -> SendFuture<'a> {
        match &event.kind {
            EventKind::Notification(notification) => _ = self.0.send(notification.as_ref().clone()),
            unexpected => panic!("no approval is expected: {unexpected:?}"),
        }
        Box::pin(async {})
    }

    fn broadcast(&self, notification: ServerNotification) -> SendFuture<'_> {
        _ = self.0.send(notification);
        Box::pin(async {})
    }

    fn notify<'a>(&'a self, _: &'a [Subscriber], notification: ServerNotification) -> SendFuture<'a> {
        _ = self.0.send(notification);
        Box::pin(async {})
    }

    fn withdraw(&self, _: &Approval) {}
}

struct FrontEnd {
    agent: Agent,
    notifications: Mutex<mpsc::UnboundedReceiver<ServerNotification>>,
    home: TempDir,
}

impl FrontEnd {
    fn new(config: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config.toml"), config).unwrap();
        let (sender, notifications) = mpsc::unbounded_channel();
        let agent = Agent::new(AgentOptions {
            sources: Arc::new(ConfigSources {
                home: AbsolutePathBuf::new(home.path()).unwrap(),
                system_file: None,
                user_home: None,
                flags: Overrides::default(),
                live: LiveSources::default(),
            }),
            store: Arc::new(FileStore::new(Options { home: home.path().into(), sqlite_home: None })),
            event_sink: Arc::new(Recorded(sender)),
            http: Http::new(&|_| None),
            account: None,
            mcp: None,
            apps: None,
            telemetry: Telemetry::default(),
            replay: None,
            ownership: None,
        });
        Self { agent, notifications: Mutex::new(notifications), home }
    }

    fn caller() -> Caller {
        let client = ClientIdentity {
            name: "test".into(),
            user_agent: "test/1".into(),
            originator: "test".into(),
            protocol_version: "0".into(),
            newer: false,
            openai_form: false,
        };
        Caller { client: Arc::new(client), subscriber: Subscriber(1) }
    }

    async fn start(&self, overrides: ThreadOverrides) -> Result<Opened, Refusal> {
        let (reply, opened) = reply();
        self.agent.start(StartThread { overrides, ..StartThread::default() }, Self::caller(), reply);
        opened.await.unwrap()
    }

    /// The next warning about settings of a request. The machine may cause others.
    async fn warning(&self) -> String {
        let mut notifications = self.notifications.lock().await;
        loop {
            if let ServerNotification::ConfigWarning(warning) =
                timeout(TIMEOUT, notifications.recv()).await.unwrap().unwrap()
                && warning.summary.starts_with("Settings of the request")
            {
                return warning.summary;
            }
        }
    }

    /// Runs a turn to its end and returns the texts of the model's messages.
    async fn turn(&self, thread_id: &str, text: &str) -> Vec<String> {
        let params = json!({ "threadId": thread_id, "input": [{ "type": "text", "text": text }] });
        let (reply, started) = reply::<Turn>();
        self.agent.threads().start_turn(serde_json::from_value(params).unwrap(), Level::V0_118, reply).await;
        let turn = started.await.unwrap().unwrap();
        let mut messages = Vec::new();
        let mut notifications = self.notifications.lock().await;
        loop {
            match timeout(TIMEOUT, notifications.recv()).await.unwrap().unwrap() {
                ServerNotification::ItemCompleted(completed) => {
                    if let ThreadItem::AgentMessage { text, .. } = completed.item {
                        messages.push(text);
                    }
                }
                ServerNotification::TurnCompleted(completed) if completed.turn.id == turn.id => {
                    assert_eq!(completed.turn.status, TurnStatus::Completed, "{:?}", completed.turn.error);
                    return messages;
                }
                _ => {}
            }
        }
    }
}

fn reply<T: Send + Sync + 'static>() -> (Reply<T>, oneshot::Receiver<Result<T, Refusal>>) {
    let (sender, receiver) = oneshot::channel();
    (Box::new(|outcome| _ = sender.send(outcome)), receiver)
}

const REHEARSAL: &str = "model_provider = \"rehearsal\"\nmodel = \"rehearsal\"\n";

#[tokio::test]
async fn a_thread_runs_a_turn_is_forked_and_is_resumed_without_a_server() {
    let first = FrontEnd::new(REHEARSAL);
    let opened = first.start(ThreadOverrides::default()).await.unwrap();
    assert_eq!((&*opened.settings.model_provider, &*opened.settings.model), ("rehearsal", "rehearsal"));
    let messages = first.turn(&opened.thread.id, "hello").await;
    assert!(!messages.is_empty(), "the model answered nothing");

    let (forked, copy) = reply();
    let request = ForkThread { thread_id: opened.thread.id.clone(), ..ForkThread::default() };
    first.agent.fork(request, FrontEnd::caller(), forked).await;
    let copy = copy.await.unwrap().unwrap();
    assert_ne!(copy.thread.id, opened.thread.id);
    assert_eq!(copy.thread.turns.len(), 1);
    first.turn(&copy.thread.id, "hello again").await;
    first.agent.threads().close_all().await;

    let (resumed, joined) = reply();
    let request = ResumeThread { thread_id: copy.thread.id.clone(), include_turns: true, ..ResumeThread::default() };
    first.agent.resume(request, FrontEnd::caller(), resumed).await;
    assert_eq!(joined.await.unwrap().unwrap().opened.thread.turns.len(), 2);
}

#[tokio::test]
async fn overrides_take_precedence_over_the_configuration() {
    let front_end = FrontEnd::new(&format!("{REHEARSAL}sandbox_mode = \"read-only\"\n"));
    let cwd = front_end.home.path().canonicalize().unwrap();
    let configured = front_end.start(ThreadOverrides::default()).await.unwrap().settings;
    assert!(matches!(configured.sandbox, SandboxPolicy::ReadOnly { .. }), "{:?}", configured.sandbox);
    let overrides = ThreadOverrides {
        model: Some("another".into()),
        sandbox: Some(SandboxMode::DangerFullAccess.into()),
        cwd: Some(cwd.to_string_lossy().into_owned()),
        ..ThreadOverrides::default()
    };
    let settings = front_end.start(overrides).await.unwrap().settings;
    assert_eq!(settings.model, "another");
    assert_eq!(settings.sandbox, SandboxPolicy::DangerFullAccess);
    assert_eq!(settings.cwd, cwd.to_string_lossy());
}

fn overrides(config: serde_json::Value) -> ThreadOverrides {
    ThreadOverrides { config: config.as_object().unwrap().clone(), ..ThreadOverrides::default() }
}

#[tokio::test]
async fn settings_of_a_request_without_effect_are_warned_about() {
    let front_end = FrontEnd::new(REHEARSAL);
    // The first thread is not warned about, as the warning of the second shows.
    let known = overrides(json!({ "model_reasoning_effort": "low", "features.apps": false }));
    front_end.start(known).await.unwrap();
    let config = json!({ "modle": "typo", "features.js_repl": true, "model_reasoning_effort": "low" });
    let id = front_end.start(overrides(config.clone())).await.unwrap().thread.id;
    let text = "Settings of the request that have no effect: \
                in `config`: `modle` (unknown), `features.js_repl` (not supported).";
    assert_eq!(front_end.warning().await, text);

    front_end.turn(&id, "hello").await;
    let resume = async |overrides: ThreadOverrides| {
        let (resumed, joined) = reply();
        let request = ResumeThread { thread_id: id.clone(), overrides, ..ResumeThread::default() };
        front_end.agent.resume(request, FrontEnd::caller(), resumed).await;
        joined.await.unwrap().unwrap().opened.settings
    };
    // What the loaded thread has anyway is no reason for a warning.
    resume(ThreadOverrides { model: Some("rehearsal".into()), ..ThreadOverrides::default() }).await;
    let other = ThreadOverrides {
        model: Some("another".into()),
        cwd: Some("/".into()),
        sandbox: Some(SandboxMode::DangerFullAccess.into()),
        developer_instructions: Some("be brief".into()),
        ..overrides(config)
    };
    let settings = resume(other.clone()).await;
    assert_eq!(settings.model, "rehearsal");
    let text = "Settings of the request that have no effect: `model`, `cwd`, `sandbox`, \
                `developerInstructions` (the thread is loaded, and keeps its settings).";
    assert_eq!(front_end.warning().await, text);

    resume(overrides(json!({ "model_reasoning_effort": "high" }))).await;
    let text = "Settings of the request that have no effect: \
                `config` (the thread is loaded, and keeps its settings).";
    assert_eq!(front_end.warning().await, text);

    front_end.agent.threads().close_all().await;
    let settings = resume(ThreadOverrides { config: Default::default(), ..other }).await;
    assert_eq!((&*settings.model, &*settings.cwd), ("another", "/"));
}

#[tokio::test]
async fn invalid_requests_to_open_a_thread_are_refused() {
    let front_end = FrontEnd::new(REHEARSAL);
    let (forked, refused) = reply();
    front_end.agent.fork(ForkThread::default(), FrontEnd::caller(), forked).await;
    let refusal = refused.await.unwrap().unwrap_err();
    assert!(matches!(&refusal, Refusal::Invalid(text) if text.starts_with("invalid thread id: ")), "{refusal:?}");

    let (resumed, refused) = reply();
    let request = ResumeThread { history: Some(Vec::new()), ..ResumeThread::default() };
    front_end.agent.resume(request, FrontEnd::caller(), resumed).await;
    assert_eq!(refused.await.unwrap().unwrap_err(), Refusal::Invalid("history must not be empty".into()));

    let wrong = ThreadOverrides { model_provider: Some("nowhere".into()), ..ThreadOverrides::default() };
    let refusal = front_end.start(wrong).await.unwrap_err();
    assert!(refusal.to_string().starts_with("failed to load configuration: "), "{refusal}");
}
