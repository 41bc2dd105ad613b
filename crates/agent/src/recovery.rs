//! Takes up the turns that other processes left unfinished: when a server starts, and when it takes a thread over.

use std::sync::Arc;
use std::time::Duration;

use loomd_protocol::{OnDisconnect, SandboxSetting};
use loomd_store::{Error, Reader, StoredThread, ThreadId};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

use crate::agent::Agent;
use crate::lanes::LaneGuard;
use crate::open::{ClientIdentity, Opener, Restore, ThreadOverrides};
use crate::ownership::OwnedThread;
use crate::refusal::Refusal;
use crate::resume::prepare;
use crate::settings::ResolvedSettings;
use crate::thread::{LoadReason, Opened, Reply};
use crate::threads::Threads;
use crate::turn_notes::{NotedThread, UnfinishedTurn};

/// How many threads are loaded at once.
const AT_ONCE: usize = 8;

/// How long the lease of a process that was killed may take to be released: a child that has not run its program yet
/// holds it, too.
const RELEASE: Duration = Duration::from_secs(2);

/// The pause between two looks at a lease.
const RELEASE_POLL: Duration = Duration::from_millis(10);

impl Agent {
    /// Notes the turns of all threads from now on, and takes up those that are unfinished. When this returns, requests
    /// about their threads wait until they are loaded.
    pub async fn recover_turns(&self) {
        let Some(notes) = self.threads().store.turn_notes() else { return };
        self.threads().services.note_turns();
        let ids = match notes.threads().await {
            Ok(ids) => ids,
            Err(error) => return tracing::warn!(%error, "unfinished turns cannot be looked up"),
        };
        let slots = Arc::new(Semaphore::new(AT_ONCE));
        for id in ids {
            let lane = self.threads().lanes.enter(id).await;
            let (threads, opener, slots) = (self.threads().clone(), Arc::clone(self.opener()), Arc::clone(&slots));
            tokio::spawn(async move {
                let (_lane, _slot) = (lane, slots.acquire().await);
                if let Err(refusal) = recover(&threads, &opener, id, None).await {
                    tracing::warn!(thread = %id, %refusal, "the unfinished turn of a thread cannot be taken up");
                }
            });
        }
    }
}

impl Agent {
    /// Notes the turns of all threads from now on, for the processes that share the store.
    pub fn note_turns(&self) {
        self.threads().services.note_turns();
    }

    /// Takes up the unfinished turn of a thread that several processes share, if it has one and is not loaded. A thread
    /// without one is let go.
    pub async fn take_up(&self, id: ThreadId) -> Result<(), Refusal> {
        let lane = self.threads().lanes.enter(id).await;
        self.own_with_turn(id, &lane).await.map(drop)
    }

    /// Takes a thread that several processes share and that is not loaded. `None` when it is loaded, with its unfinished
    /// turn if it has one.
    pub(crate) async fn own_with_turn(&self, id: ThreadId, lane: &LaneGuard) -> Result<Option<OwnedThread>, Refusal> {
        match self.threads().own(id, lane).await? {
            Some(owned) => recover(self.threads(), self.opener(), id, Some(owned)).await,
            None => Ok(None),
        }
    }
}

/// Loads a thread and goes on with its unfinished turn. Returns `owned` when it has none. To be called in the thread's
/// lane.
async fn recover(
    threads: &Threads,
    opener: &Arc<Opener>,
    id: ThreadId,
    owned: Option<OwnedThread>,
) -> Result<Option<OwnedThread>, Refusal> {
    let Some(notes) = threads.store.turn_notes() else { return Ok(owned) };
    let lines = notes.read(id).await?;
    if lines.is_empty() {
        return Ok(owned);
    }
    let Some(mut unfinished) = UnfinishedTurn::parse(&lines) else {
        tracing::warn!(thread = %id, "the notes about a turn are invalid and are removed");
        notes.remove(id).await?;
        return Ok(owned);
    };
    let mut stored = match threads.store.find(id, Some(false)).await {
        // Deleted or archived since.
        Err(Error::NotFound { .. }) => {
            notes.remove(id).await?;
            return Ok(owned);
        }
        found => found?,
    };
    let reader = threads.store.open(id).await?;
    if !is_free(&*reader).await? {
        tracing::info!(thread = %id, "another process has the lease of a thread with an unfinished turn");
        return match owned {
            Some(_) => Err(Refusal::LeaseLost(format!("thread {id} is another process's"))),
            None => Ok(None),
        };
    }
    let resolved = match with_noted_settings(opener, &unfinished.started.thread, &mut stored, &*reader).await {
        Err(Refusal::Invalid(reason)) => {
            tracing::warn!(thread = %id, reason, "an unfinished turn cannot go on with its settings: it is interrupted");
            unfinished.started.thread.on_disconnect = OnDisconnect::Interrupt;
            let (_, client) = opened_with(&unfinished.started.thread);
            let resolve = opener.resolver(ThreadOverrides::default(), Restore::Model, Arc::new(client));
            prepare(&mut stored, &*reader, false, resolve).await?.0
        }
        resolved => resolved?,
    };
    let (done, loaded) = oneshot::channel();
    let reply: Reply<Opened> = Box::new(move |opened| _ = done.send(opened.map(|_| ())));
    threads.load_stored(stored, reader, owned, resolved, LoadReason::Recovered(Box::new(unfinished)), reply);
    loaded.await.unwrap_or_else(|_| Err(Refusal::failed("the thread was unloaded")))?;
    Ok(None)
}

/// The settings that an unfinished turn was started with.
async fn with_noted_settings(
    opener: &Arc<Opener>,
    noted: &NotedThread,
    stored: &mut StoredThread,
    reader: &dyn Reader,
) -> Result<ResolvedSettings, Refusal> {
    let (overrides, client) = opened_with(noted);
    let resolve = opener.resolver(overrides, Restore::Nothing, Arc::new(client));
    let (resolved, _) = prepare(stored, reader, false, resolve).await?;
    Ok(with_turn_settings(resolved, noted.clone()))
}

/// Whether no process has the lease of a thread.
async fn is_free(reader: &dyn Reader) -> Result<bool, Refusal> {
    let deadline = Instant::now() + RELEASE;
    loop {
        match reader.writer().await {
            Err(Error::Held { .. }) if Instant::now() < deadline => tokio::time::sleep(RELEASE_POLL).await,
            Err(Error::Held { .. }) => return Ok(false),
            writer => {
                drop(writer?);
                return Ok(true);
            }
        }
    }
}

/// The settings that a thread was opened with, and the client that opened it.
fn opened_with(noted: &NotedThread) -> (ThreadOverrides, ClientIdentity) {
    let settings = &noted.settings;
    let profile = settings.active_permission_profile.as_ref().map(|profile| profile.id.clone());
    let policy = settings.sandbox_policy.clone().filter(|_| profile.is_none());
    let overrides = ThreadOverrides {
        model: Some(settings.model.clone()),
        model_provider: settings.model_provider.clone(),
        service_tier: Some(settings.service_tier.clone()),
        cwd: Some(settings.cwd.clone()),
        approval_policy: Some(settings.approval_policy.clone()),
        approvals_reviewer: settings.approvals_reviewer,
        sandbox: policy.map(|policy| SandboxSetting::Policy(policy.into())),
        permissions: profile,
        config: noted.config.clone(),
        developer_instructions: noted.developer_instructions.clone(),
        personality: settings.personality,
        raw_events: noted.raw_events,
        without_environment: !noted.has_environment,
        on_disconnect: Some(noted.on_disconnect),
        ..ThreadOverrides::default()
    };
    let client = ClientIdentity {
        name: noted.client.name.clone(),
        user_agent: noted.client.user_agent.clone(),
        originator: noted.client.originator.clone(),
        protocol_version: noted.client.protocol_version.clone(),
        newer: noted.client.newer,
        openai_form: noted.client.openai_form,
    };
    (overrides, client)
}

/// With the settings that no override names.
fn with_turn_settings(mut resolved: ResolvedSettings, noted: NotedThread) -> ResolvedSettings {
    let (settings, stored) = (&mut resolved.settings, noted.settings);
    settings.reasoning_effort = stored.effort;
    settings.summary = stored.summary;
    if let Some(mode) = stored.collaboration_mode {
        settings.mode = mode.mode;
        settings.mode_instructions = mode.settings.developer_instructions;
    }
    resolved
}
