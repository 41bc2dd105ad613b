//! How a thread begins a turn: under its lease, after the turn was noted.

use std::sync::Arc;

use jiff::civil::Date;
use loomd_model::ModelInfo;
use loomd_protocol::{
    Budget, ModeKind, ServerNotification, ThreadItem, Turn as WireTurn, TurnItemsView, TurnStartedNotification,
    UserInput,
};
use loomd_store::rollout::AgentStatus;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;
use tracing::field::Empty;
use uuid::Uuid;

use super::memory::Memory;
use super::op::Reply;
use super::running_turn::{RunningTurn, TurnKind};
use super::state::Thread;
use crate::context;
use crate::guard::ActionCx;
use crate::inbox::Inbox;
use crate::metering::{Spending, SpendingOf};
use crate::recorder::Recorder;
use crate::refusal::Refusal;
use crate::tools::{Role, ToolCx, Toolbox};
use crate::trace::{TraceOf, TurnTrace};
use crate::turn::{ModelScope, Progress, RecoveredTurn, TurnInput, TurnTask, Work};
use crate::turn_cx::{TurnCx, TurnStart};
use crate::turn_origin::TurnOrigin;
use crate::view::Persistence;

impl Thread {
    pub(super) async fn begin_turn(
        &mut self,
        turn_id: String,
        mut work: Work,
        reply: Option<Reply<WireTurn>>,
    ) -> Result<(), (Refusal, Option<Reply<WireTurn>>)> {
        let prepared = match self.prepare_noted(&turn_id, &mut work).await {
            Ok(prepared) => prepared,
            Err(refusal) => return Err((refusal, reply)),
        };
        if let Some(reply) = reply {
            reply(Ok(shown_turn(turn_id.clone(), &work)));
        }
        self.launch(prepared, turn_id, work).await;
        Ok(())
    }

    /// Takes the thread's lease for a turn that is about to start.
    pub(super) async fn prepare_turn(&mut self) -> Result<(Recorder, Memory), Refusal> {
        self.record_notifications().await;
        self.materialize_noted().await?;
        self.prepare().await
    }

    /// Takes the thread's lease for a turn and notes the turn.
    pub(super) async fn prepare_noted(
        &mut self,
        turn_id: &str,
        work: &mut Work,
    ) -> Result<(Recorder, Memory), Refusal> {
        let prepared = self.prepare_turn().await?;
        match self.note_started(turn_id, work, false).await {
            Ok(()) => Ok(prepared),
            Err(refusal) => {
                self.put_back(prepared);
                Err(refusal)
            }
        }
    }

    /// Gives up the lease of a turn that does not start after all.
    pub(super) fn put_back(&mut self, (recorder, memory): (Recorder, Memory)) {
        drop(recorder);
        self.memory = Some(Box::new(memory));
    }

    /// Starts a turn under the lease that was taken for it.
    pub(super) async fn launch(&mut self, prepared: (Recorder, Memory), turn_id: String, work: Work) {
        self.launch_recovered(prepared, turn_id, work, None).await;
    }

    /// Like [`Self::launch`], for a turn of which another process has left something.
    pub(super) async fn launch_recovered(
        &mut self,
        (recorder, memory): (Recorder, Memory),
        turn_id: String,
        work: Work,
        recovered: Option<Box<RecoveredTurn>>,
    ) {
        self.goals.begin_turn(self.settings.mode == ModeKind::Plan).await;
        let goal_turn = matches!(&work, Work::Answer(answer) if matches!(answer.input, TurnInput::Goal(_)));
        let Memory { conversation, session, rate_limits } = memory;
        let inbox = Arc::new(Inbox::counted(&self.services.metering.inbox_inputs));
        let (cancel, replaced) = (CancellationToken::new(), Arc::default());
        let (budget, origin) = work.budget_and_origin();
        let trace = self.trace("turn", &turn_id, &origin);
        let spending = self.spending(turn_id.clone(), budget.as_ref(), origin);
        let mut cx = TurnCx::new(
            self.id,
            turn_id.clone(),
            self.settings.clone(),
            Arc::clone(&self.profile),
            self.profile.model(&self.settings.model),
            Arc::clone(&self.events),
            Arc::clone(&self.view),
            cancel.clone(),
            recorder,
            Arc::clone(&self.realtime_link),
            Arc::clone(&self.guard.denials),
            spending,
            trace,
            self.notes.clone(),
            Arc::clone(&self.disconnect),
        );
        cx.let_go = Arc::clone(&self.let_go);
        if let Some(recovered) = &recovered {
            cx.started = TurnStart::at(recovered.started_at);
        }
        let cx = Arc::new(cx);
        cx.spending.limit_time(cancel.clone(), cx.over.clone());
        self.tools.agent_tree.set_inbox(self.id, Some(Arc::clone(&inbox)));
        self.tools.mcp.set_policy(&self.settings.approval_policy);
        let kind = TurnKind::of(&work);
        let action =
            ActionCx { turn: Arc::clone(&cx), services: Arc::clone(&self.services), guard: Arc::clone(&self.guard) };
        let tools = Arc::new(ToolCx::new(action, Arc::clone(&self.tools)));
        let turn = TurnTask {
            toolbox: Arc::new(Toolbox::new(Arc::clone(&tools), Arc::clone(&self.tool_sources))),
            scope: self.scope(&cx),
            cx: Arc::clone(&cx),
            services: Arc::clone(&self.services),
            view: Arc::clone(&self.view),
            conversation: conversation.unwrap_or_default(),
            session,
            inbox: Arc::clone(&inbox),
            meta: (self.view.persistence() == Persistence::Pending).then(|| self.meta.clone()),
            subagents: self.subagents(),
            rate_limits,
            goals: Arc::clone(&self.goals),
            replaced: Arc::clone(&replaced),
            progress: Progress::after(recovered),
        };
        // Counted before it is published: a shutdown that follows the event waits for the turn.
        let working = self.busy.begin();
        self.view.set_running_turn(Some(turn_id.clone()));
        self.view.change(&self.events, |status| (status.running, status.error) = (true, false)).await;
        let root_turn_id = root_turn_id(&turn_id, &work);
        let shown = WireTurn {
            started_at: Some(cx.started.at.as_second()),
            root_turn_id: Some(root_turn_id.clone()),
            ..in_progress(turn_id.clone())
        };
        let started = TurnStartedNotification { thread_id: self.id.to_string(), turn: shown };
        self.events.publish(ServerNotification::TurnStarted(started)).await;
        let model = &self.settings.model;
        let span = tracing::debug_span!("turn", thread = %self.id, turn = %turn_id, model, outcome = Empty);
        let task = AbortOnDropHandle::new(tokio::spawn(turn.run(work).instrument(span)));
        self.running = Some(RunningTurn {
            turn_id,
            kind,
            cx,
            tools,
            inbox,
            cancel,
            replaced,
            task,
            root_turn_id,
            goal_turn,
            queued_message: false,
            interrupts: Vec::new(),
            _working: working,
        });
        self.tools.agent_tree.set(self.id, AgentStatus::Running);
    }

    /// The spans and log events of a turn or a sample.
    pub(super) fn trace(&self, name: &'static str, turn_id: &str, origin: &TurnOrigin) -> Arc<TurnTrace> {
        let of = TraceOf {
            name,
            thread_id: self.id.to_string(),
            turn_id,
            client: &self.profile.client,
            model: &self.settings.model,
            origin,
        };
        match self.services.replayed {
            Some(_) => Arc::default(),
            None => TurnTrace::begin(&self.services.telemetry, of),
        }
    }

    /// What a turn or a sample is about to spend.
    pub(super) fn spending(&self, turn_id: String, budget: Option<&Budget>, origin: TurnOrigin) -> Arc<Spending> {
        let tree = &self.tools.agent_tree;
        let since = self.meta.created_at().map_or(Date::MIN, loomd_ledger::today);
        let of = SpendingOf {
            thread_id: self.id.to_string(),
            turn_id,
            root_thread_id: tree.root(self.id).to_string(),
            // The root of a tree is older than its agents, by an unknown time.
            since: if self.tools.role == Role::Child { Date::MIN } else { since },
            client: &self.profile.client,
            config: self.profile.config.config.loomd.as_ref(),
            budget,
            thread: Arc::clone(&tree.spending),
            parents: origin.parents,
            unlimited: self.services.replayed.is_some(),
        };
        Spending::new(&self.services.metering, of)
    }

    pub(super) fn scope(&mut self, cx: &TurnCx) -> ModelScope {
        ModelScope {
            session_id: self.id.to_string(),
            subagent: (self.tools.role == Role::Child).then(|| "collab_spawn".into()),
            instructions: self.instructions(&cx.model),
            shows_messages: true,
            records: true,
        }
    }

    /// The instructions of the last turn as long as the model is the same. A changed personality is sent in the
    /// conversation.
    pub(super) fn instructions(&mut self, model: &ModelInfo) -> Arc<str> {
        if let Some((last, instructions)) = &self.instructions
            && *last == self.settings.model
        {
            return Arc::clone(instructions);
        }
        let configured = self.profile.config.config.personality;
        let initial = configured.or(context::personality(&self.settings, &self.profile));
        let personality = initial.filter(|_| model.supports_personality || !model.known);
        let instructions: Arc<str> = context::instructions(&self.profile, model, personality).into();
        self.instructions = Some((self.settings.model.clone(), Arc::clone(&instructions)));
        instructions
    }

    fn subagents(&self) -> Vec<(String, String)> {
        let children = self.tools.agent_tree.children(self.id).into_iter();
        children.map(|(id, nickname)| (id.to_string(), nickname)).collect()
    }
}

pub(crate) fn new_turn_id() -> String {
    Uuid::now_v7().to_string()
}

pub(crate) fn in_progress(id: String) -> WireTurn {
    let root_turn_id = Some(id.clone());
    WireTurn { id, items_view: Some(TurnItemsView::NotLoaded), root_turn_id, ..WireTurn::default() }
}

/// The turn of a response. That of a review has the review's hint as its first item.
pub(super) fn shown_turn(id: String, work: &Work) -> WireTurn {
    let mut turn = in_progress(id);
    turn.root_turn_id = Some(root_turn_id(&turn.id, work));
    if let Work::Review { hint, .. } = work {
        let content = vec![UserInput::Text { text: hint.clone(), text_elements: Vec::new() }];
        turn.items.push(ThreadItem::UserMessage { id: turn.id.clone(), content, client_id: None });
    }
    turn
}

/// The turn that a turn belongs to, as its request says: itself unless another is named.
fn root_turn_id(turn_id: &str, work: &Work) -> String {
    match work {
        Work::Answer(answer) => answer.labels.root_turn_id.clone().unwrap_or_else(|| turn_id.to_owned()),
        _ => turn_id.to_owned(),
    }
}
