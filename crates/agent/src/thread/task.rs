//! The task of a loaded thread: it serves requests until the thread is unloaded.

use std::sync::Arc;
use std::time::Duration;

use loomd_protocol::{
    OnDisconnect, ServerNotification, Thread as WireThread, ThreadClosedNotification, ThreadNameUpdatedNotification,
    ThreadReplayReason, ThreadStartedNotification, ThreadUnsubscribeStatus,
};
use loomd_store::ThreadId;
use loomd_store::rollout::AgentStatus;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::op::{Elicit, LoadReason, Op, Opened, Reply};
use super::running_turn::RunningTurn;
use super::state::Thread;
use crate::event::MissedEvents;
use crate::event_sink::Subscriber;
use crate::project_doc::ProjectDocs;
use crate::realtime::RealtimeSession;
use crate::refusal::Refusal;
use crate::turn_notes::UnfinishedTurn;
use crate::view::Persistence;

/// How long an idle thread keeps its conversation in memory. It is read again when needed.
const IDLE_MEMORY_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a thread without subscribers and turns stays loaded, unless that is configured.
const UNLOAD_DELAY_SECONDS: u64 = 60;

/// The pause before a failed write is retried.
const WRITE_RETRY_DELAY: Duration = Duration::from_secs(1);

/// How long a turn may take to stop when its thread is unloaded.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// How long killed commands may take to end when their thread is unloaded.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// What becomes of the thread.
enum Next {
    Stay,
    Unload,
    /// It is unloaded for a request, whose sender is notified afterwards.
    Close(oneshot::Sender<()>),
    /// Another process goes on with it.
    GiveUp,
}

impl Thread {
    /// Publishes that the thread is loaded, then serves requests until it is unloaded. `registration` is dropped before
    /// the unloading is published, and also when the task panics. What was read of the thread is right only
    /// under this epoch.
    pub async fn run(
        mut self,
        first: LoadReason,
        epoch: Option<u64>,
        reply: Reply<Opened>,
        mut ops: mpsc::Receiver<Op>,
        registration: impl Drop,
    ) {
        let owned = match &self.services.ownership {
            Some(ownership) => match ownership.own(self.id).await {
                Ok(now) if epoch.is_none_or(|epoch| epoch == now) => {
                    self.events.begin_at(now);
                    Ok(())
                }
                Ok(_) => Err(Refusal::LeaseLost(format!("thread {} moved while it was loaded; retry", self.id))),
                Err(refusal) => Err(refusal),
            },
            None => Ok(()),
        };
        let required = match owned {
            Ok(()) => self.tools.mcp.start_required(&self.profile.mcp_servers).await,
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = required {
            ops.close();
            drop(registration);
            return reply(Err(refusal));
        }
        let (resumed, forked) =
            (matches!(first, LoadReason::Resumed { .. }), matches!(first, LoadReason::Forked { .. }));
        let first = match first {
            LoadReason::Recovered(unfinished) => {
                if let Err(refusal) = self.load_recovered(*unfinished).await {
                    ops.close();
                    self.give_up(registration).await;
                    return reply(Err(refusal));
                }
                let opened = self.opened(self.view.thread());
                reply(Ok(opened));
                None
            }
            first => Some((first, reply)),
        };
        if let Some((first, reply)) = first {
            self.begin(first, reply).await;
            self.tools.mcp.set(&self.profile.mcp_servers, &self.settings);
        }
        if resumed {
            self.resume_goal().await;
        } else if forked {
            self.publish_forked_goal().await;
        }
        let closed = loop {
            let let_go = Arc::clone(&self.let_go);
            let next = tokio::select! {
                biased;
                // What it was doing may wait for a store that does not answer.
                () = let_go.abandoned() => Next::GiveUp,
                next = self.next(&mut ops) => next,
            };
            match next {
                Next::Stay => {}
                Next::Unload => break None,
                Next::Close(done) => break Some(done),
                Next::GiveUp => {
                    ops.close();
                    return self.give_up(registration).await;
                }
            }
        };
        self.closing = true;
        self.end_realtime().await;
        self.stop_turns().await;
        self.stop_terminals(&mut ops).await;
        if self.can_retry_writes() {
            self.retry_writes().await;
        }
        ops.close();
        self.tools.agent_tree.set(self.id, AgentStatus::Shutdown);
        self.host.close_children(self.id, &self.tools.agent_tree).await;
        // Before the thread can be loaded again.
        drop(self.watched.take());
        drop(registration);
        self.reader = None;
        self.view.change(&self.events, |status| status.loaded = false).await;
        match closed {
            // The request that closed the thread publishes its new state.
            Some(done) => _ = done.send(()),
            None => {
                let closed = ThreadClosedNotification { thread_id: self.id.to_string() };
                self.broadcast(ServerNotification::ThreadClosed(closed)).await;
            }
        }
    }

    /// Does what comes next: a request, or what is due. Not to be dropped before it is done, unless the thread is given up.
    async fn next(&mut self, ops: &mut mpsc::Receiver<Op>) -> Next {
        let unloads_after = self.unloads_after();
        let let_go = Arc::clone(&self.let_go);
        tokio::select! {
            () = let_go.due(self.running.is_some()) => return Next::GiveUp,
            ended = RunningTurn::ended(&mut self.running) => self.turn_ended(ended).await,
            event = RealtimeSession::next(&mut self.realtime) => self.realtime_event(event).await,
            op = ops.recv() => return match op {
                None => Next::Unload,
                Some(Op::Close(done)) => Next::Close(done),
                Some(op) => self.serve(op).await,
            },
            () = sleep_until(self.wake_at), if self.wake_at.is_some() => {
                self.wake_at = None;
                self.begin_idle_work().await;
            }
            () = tokio::time::sleep(unloads_after.unwrap_or_default()), if unloads_after.is_some() => {
                return Next::Unload;
            }
            () = tokio::time::sleep(WRITE_RETRY_DELAY), if self.can_retry_writes() => self.retry_writes().await,
            () = tokio::time::sleep(IDLE_MEMORY_TIMEOUT), if self.can_forget() => {
                self.memory = None;
                self.events.forget_recent();
            }
        }
        Next::Stay
    }

    /// Ends without a word and without a record: another process goes on with the thread, and with its turn. Its
    /// programs end before the thread can be taken.
    async fn give_up(mut self, registration: impl Drop) {
        self.events.silence();
        if let Some(ownership) = &self.services.ownership
            && self.let_go.is_abandoned()
            && self.let_go.notifies()
        {
            ownership.gave_up(self.id, self.events.subscribers());
        }
        if let Some(RunningTurn { task, .. }) = self.running.take() {
            task.abort();
            _ = tokio::time::timeout(KILL_TIMEOUT, task).await;
        }
        self.tools.terminals.sessions.terminate_all();
        self.tools.agent_tree.set(self.id, AgentStatus::Shutdown);
        drop(self.watched.take());
        self.reader = None;
        drop(registration);
    }

    async fn begin(&mut self, first: LoadReason, reply: Reply<Opened>) {
        self.view.show_settings(&self.settings);
        self.instruction_sources = self.find_instruction_sources().await;
        let mut opened = self.opened(self.view.thread());
        match first {
            LoadReason::Started { notices } => {
                reply(Ok(opened.clone()));
                self.publish_started(opened.thread).await;
                for notice in notices {
                    self.events.publish(ServerNotification::DeprecationNotice(notice)).await;
                }
            }
            LoadReason::Forked { turns } => {
                opened.thread.turns = turns;
                reply(Ok(opened.clone()));
                self.publish_started(opened.thread).await;
            }
            LoadReason::Spawned => {
                reply(Ok(opened.clone()));
                self.publish_started(opened.thread).await;
                self.publish_status().await;
            }
            LoadReason::Recovered(_) => {}
            LoadReason::Resumed { turns, after } => {
                self.publish_status().await;
                opened.thread.turns = turns;
                opened.missed = after.map(|_| MissedEvents::Unknown(ThreadReplayReason::NotLoaded));
                self.events
                    .at_last(|last| {
                        opened.event_id = Some(last);
                        reply(Ok(opened));
                    })
                    .await;
            }
        }
    }

    /// Loads the thread without a client and goes on with its unfinished turn. It is unloaded like a thread that its
    /// last client has left.
    async fn load_recovered(&mut self, unfinished: UnfinishedTurn) -> Result<(), Refusal> {
        self.view.show_settings(&self.settings);
        self.instruction_sources = self.find_instruction_sources().await;
        self.publish_status().await;
        self.tools.mcp.set(&self.profile.mcp_servers, &self.settings);
        if let Ok(Some(goal)) = self.goals.read().await {
            self.goals.resume_clock(&goal);
        }
        let delay = self.profile.config.config.thread_unload_delay_secs.unwrap_or(UNLOAD_DELAY_SECONDS);
        self.unload_delay = Some(Duration::from_secs(delay.max(1)));
        self.recover(unfinished).await
    }

    /// Finds the instruction files of the working directory.
    async fn find_instruction_sources(&self) -> Arc<[String]> {
        let (home, cwd) = (self.services.home.clone(), self.settings.cwd.clone());
        let config = &self.profile.config.config;
        let markers = config.project_root_markers();
        let fallbacks = config.project_doc_fallback_filenames.clone().unwrap_or_default();
        let found = tokio::task::spawn_blocking(move || {
            let docs = ProjectDocs {
                home: &home,
                cwd: std::path::Path::new(&cwd),
                root_markers: &markers,
                fallback_names: &fallbacks,
                max_bytes: 0,
            };
            docs.sources().into_iter().map(|path| path.to_string_lossy().into_owned()).collect()
        });
        found.await.unwrap_or_default()
    }

    async fn serve(&mut self, op: Op) -> Next {
        match op {
            Op::Join { subscriber, turns, after, on_disconnect, reply } => {
                let changed = match on_disconnect {
                    Some(policy) => self.set_on_disconnect(policy).await,
                    None => Ok(()),
                };
                match changed {
                    Ok(()) => self.join(subscriber, turns, after, reply).await,
                    Err(refusal) => reply(Err(refusal)),
                }
            }
            Op::Leave { subscriber, ends, reply, left } => {
                let next = self.leave(subscriber, ends, reply).await;
                if matches!(next, Next::Unload) {
                    self.left = Some(left);
                }
                return next;
            }
            Op::Disconnected(subscriber) => self.disconnected(subscriber).await,
            Op::Rename { name, reply } => {
                let renamed = self.rename(&name).await;
                let told = renamed.is_ok();
                reply(renamed);
                if told {
                    self.broadcast(name_updated(self.id, name)).await;
                }
            }
            Op::RollBack { turns, reply } => self.roll_back(turns, reply).await,
            Op::Elicit { change, reply } => reply(self.elicit(change)),
            Op::Show { turns, reply } => self.show_at(turns, reply).await,
            Op::StartTurn { params, chosen, level, key, origin, reply } => {
                if let Some(reply) = self.unanswered(key.as_ref(), reply).await {
                    self.start_turn(*params, chosen, level, key, origin, reply).await;
                }
            }
            Op::UpdateSettings { params, chosen, reply } => self.update_settings(*params, chosen, reply).await,
            Op::UpdateTurn { turn_id, change, reply } => reply(Ok(self.update_turn(&turn_id, change))),
            Op::Revert { before, reply } => self.revert(before, reply).await,
            Op::Inject { items, reply } => self.inject(items, reply).await,
            Op::ListTerminals(reply) => reply(Ok(self.list_terminals())),
            Op::EndTerminal { process_id, reply } => reply(Ok(self.tools.terminals.end(process_id))),
            Op::Steer { expected, input, key, reply } => {
                if let Some(reply) = self.unanswered(key.as_ref(), reply).await {
                    reply(self.steer_once(&expected, input, key).await);
                }
            }
            Op::Interrupt { turn_id, strict, reply } => self.interrupt(&turn_id, strict, reply).await,
            Op::SetGoal { change, reply } => self.set_goal(change, reply).await,
            Op::ClearGoal(reply) => self.clear_goal(reply).await,
            Op::Enqueue { client_id, input, reply } => self.enqueue(client_id, input, reply).await,
            Op::StartQueued { message, reply } => self.start_queued(message, reply).await,
            Op::Sample { params, cancel, reply } => self.sample(*params, cancel, reply).await,
            Op::ApproveDenied { event, reply } => self.approve_denied(&event, reply).await,
            Op::AgentMessage { message, start, origin, reply } => {
                self.agent_message(message, start, origin, reply).await;
            }
            Op::Replace { work, key, reply } => {
                if let Some(reply) = self.unanswered(key.as_ref(), reply).await {
                    self.replace(work, key, reply).await;
                }
            }
            Op::ItemEnded { ended, done } => {
                self.item_ended(*ended).await;
                _ = done.send(());
            }
            Op::CleanTerminals(reply) => {
                reply(Ok(()));
                self.tools.terminals.sessions.terminate_all();
            }
            Op::ReloadMcpServers(load) => match load(&self.profile, &self.settings) {
                Ok(servers) => self.tools.mcp.set(&servers, &self.settings),
                Err(error) => tracing::warn!(thread = %self.id, %error, "the MCP servers could not be read again"),
            },
            Op::Realtime { request, reply } => self.realtime_request(request, reply).await,
            Op::RecordNotifications => self.record_notifications().await,
            Op::ShellCommand { command, key, reply } => {
                if let Some(reply) = self.unanswered(key.as_ref(), reply).await {
                    self.shell_command(command, key, reply).await;
                }
            }
            Op::Close(_) => return Next::Unload,
        }
        Next::Stay
    }

    /// Ends a subscription. With the last one the thread is unloaded, at once if `ends`, else after a delay and not
    /// while a turn runs.
    async fn leave(&mut self, subscriber: Subscriber, ends: bool, reply: Reply<ThreadUnsubscribeStatus>) -> Next {
        let Some(left) = self.events.unsubscribe(subscriber).await else {
            reply(Ok(ThreadUnsubscribeStatus::NotSubscribed));
            return Next::Stay;
        };
        reply(Ok(ThreadUnsubscribeStatus::Unsubscribed));
        if left > 0 {
            return Next::Stay;
        }
        let delay = self.profile.config.config.thread_unload_delay_secs.unwrap_or(UNLOAD_DELAY_SECONDS);
        self.unload_delay = Some(Duration::from_secs(delay)).filter(|_| !ends);
        match ends || (delay == 0 && self.is_idle()) {
            true => Next::Unload,
            false => Next::Stay,
        }
    }

    /// Ends the subscription of a client whose connection is closed.
    async fn disconnected(&mut self, subscriber: Subscriber) {
        let left = self.events.unsubscribe(subscriber).await;
        if left == Some(0) && self.disconnect.get() == OnDisconnect::Interrupt {
            for queued in std::mem::take(&mut self.queued) {
                self.publish_not_started(queued.into_turn_id(), None).await;
            }
            if let Some(running) = &self.running {
                running.cancel();
            }
        }
    }

    /// Whether no turn is running or waits.
    fn is_idle(&self) -> bool {
        self.running.is_none() && self.queued.is_empty()
    }

    /// How long the thread stays loaded from now on, if it is to be unloaded.
    fn unloads_after(&self) -> Option<Duration> {
        self.unload_delay.filter(|_| self.is_idle() && self.events.subscribers().is_empty())
    }

    /// Ends the running turn before the thread is unloaded.
    pub(super) async fn stop_turns(&mut self) {
        for queued in std::mem::take(&mut self.queued) {
            self.publish_not_started(queued.into_turn_id(), None).await;
        }
        if let Some(running) = &self.running {
            running.cancel();
            let ended = RunningTurn::ended(&mut self.running);
            if let Ok(ended) = tokio::time::timeout(STOP_TIMEOUT, ended).await {
                self.turn_ended(ended).await;
            }
        }
    }

    /// Kills the commands in the background before the thread is unloaded. Other requests that come meanwhile are
    /// dropped.
    async fn stop_terminals(&mut self, ops: &mut mpsc::Receiver<Op>) {
        self.tools.terminals.sessions.terminate_all();
        let events = Arc::clone(&self.events);
        let ended = async {
            while events.has_open_items()
                && let Some(op) = ops.recv().await
            {
                if let Op::ItemEnded { .. } = op {
                    self.serve(op).await;
                }
            }
        };
        _ = tokio::time::timeout(KILL_TIMEOUT, ended).await;
    }

    /// Whether a failed write can be retried now.
    fn can_retry_writes(&self) -> bool {
        !self.unwritten.is_empty() && self.running.is_none() && self.view.persistence() != Persistence::Pending
    }

    /// Whether the memory can be dropped: it can be read again from the rollout.
    fn can_forget(&self) -> bool {
        self.memory.is_some() && self.view.persistence() == Persistence::Stored
    }

    async fn rename(&self, name: &str) -> Result<(), Refusal> {
        if self.view.persistence() == Persistence::Ephemeral {
            return Err(Refusal::invalid(format!("ephemeral thread cannot be renamed: {}", self.id)));
        }
        Ok(self.store.rename(self.id, name).await?)
    }

    fn elicit(&mut self, change: Elicit) -> Result<u64, Refusal> {
        self.elicitations = match change {
            Elicit::Begin => self.elicitations + 1,
            Elicit::End => self
                .elicitations
                .checked_sub(1)
                .ok_or_else(|| Refusal::invalid("out-of-band elicitation count is already zero"))?,
        };
        Ok(self.elicitations)
    }

    pub(crate) async fn publish_status(&self) {
        self.view.publish(&self.events).await;
    }

    async fn publish_started(&self, thread: WireThread) {
        self.broadcast(ServerNotification::ThreadStarted(ThreadStartedNotification { thread: Box::new(thread) })).await;
    }

    pub(super) async fn broadcast(&self, notification: ServerNotification) {
        self.events.broadcast(notification).await;
    }
}

/// Resolves at an instant; never without one.
async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

pub(crate) fn name_updated(id: ThreadId, name: String) -> ServerNotification {
    ServerNotification::ThreadNameUpdated(ThreadNameUpdatedNotification {
        thread_id: id.to_string(),
        thread_name: Some(name),
    })
}
