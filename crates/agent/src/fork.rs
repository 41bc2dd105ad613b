//! Forking: a new thread with the history of another one.

use jiff::Timestamp;
use loomd_protocol::{ThreadGoalStall, ThreadGoalStatus, ThreadStatus, Turn, TurnStatus};
use loomd_store::rollout::{AbortReason, Event, Line, Record, ThreadRolledBack, TurnAborted};
use loomd_store::{Batch, Durability, Goal, Position, Reader, RequestKey, StoredThread, ThreadId, Writer};
use uuid::Uuid;

use crate::conversation::Conversation;
use crate::event_sink::Subscriber;
use crate::git;
use crate::history;
use crate::loading::{PreparedThread, new_meta};
use crate::message::message;
use crate::prompts;
use crate::refusal::Refusal;
use crate::resume::{unloadable, unloadable_at};
use crate::settings::{Basis, Resolve, ResolvedSettings};
use crate::thread::{LoadReason, Opened, Reply};
use crate::threads::{Source, Threads};
use crate::turns::{Turns, full, interrupt_open};
use crate::view::{Persistence, View};

/// The size of the chunks that are copied.
const PIECE: usize = 1024 * 1024;

/// Where the history of a fork ends, if it is not all of the source's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForkBoundary {
    /// With this turn.
    Last(String),
    /// Before this turn.
    Before(String),
}

impl ForkBoundary {
    /// How many turns are kept.
    fn kept(&self, turns: &[Turn]) -> Result<usize, Refusal> {
        let (Self::Last(id) | Self::Before(id)) = self;
        let at = turns.iter().position(|turn| turn.id == *id);
        let at = at.ok_or_else(|| Refusal::invalid(format!("turn not found: {id}")))?;
        match self {
            Self::Before(_) => Ok(at),
            Self::Last(_) if turns[at].status == TurnStatus::InProgress => {
                Err(Refusal::invalid(format!("lastTurnId '{id}' identifies an in-progress turn")))
            }
            Self::Last(_) => Ok(at + 1),
        }
    }
}

/// How a fork is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForkForm {
    /// Its id, if that was chosen before.
    pub id: Option<ThreadId>,
    /// Never stored.
    pub ephemeral: bool,
    /// Listed as attached to its source.
    pub attach: bool,
    /// Where its history ends; `None`: with the source's.
    pub boundary: Option<ForkBoundary>,
    /// It takes the goal along, which continues after its first turn.
    pub defer_goal: bool,
}

impl Threads {
    /// Copies a stored thread into a new one. The source is not touched, and may be running.
    pub async fn fork(
        &self,
        source: Source,
        form: ForkForm,
        resolve: Resolve,
        subscriber: Subscriber,
        reply: Reply<Opened>,
    ) {
        self.fork_as(source, form, None, resolve, subscriber, reply).await;
    }

    /// Like [`Self::fork`], once for each key: a request with the key of an earlier one opens its fork.
    pub(crate) async fn fork_once(
        &self,
        source: Source,
        mut form: ForkForm,
        key: Option<&RequestKey>,
        resolve: Resolve,
        subscriber: Subscriber,
        reply: Reply<Opened>,
    ) {
        let Some(key) = key else { return self.fork(source, form, resolve, subscriber, reply).await };
        let of = match &source {
            Source::Id(id) => Some(*id),
            Source::Path(_) => None,
        };
        match self.claim_thread(of, key, true).await {
            Ok(claimed) if claimed.exists => self.open_claimed(claimed, None, true, resolve, subscriber, reply).await,
            Ok(claimed) => {
                form.id = Some(claimed.id);
                self.fork_as(source, form, Some((of, key)), resolve, subscriber, reply).await;
            }
            Err(refusal) => reply(Err(refusal)),
        }
    }

    /// Forks for a request with a key, of a thread or of none.
    async fn fork_as(
        &self,
        source: Source,
        form: ForkForm,
        key: Option<(Option<ThreadId>, &RequestKey)>,
        resolve: Resolve,
        subscriber: Subscriber,
        reply: Reply<Opened>,
    ) {
        let from = match &source {
            Source::Id(id) if form.defer_goal => Some(*id),
            _ => None,
        };
        let copied = async {
            let (loading, turns) = self.copy(source, form, resolve).await?;
            if let Some(from) = from {
                self.copy_goal_to(from, loading.meta.id).await?;
            }
            if let Some((of, key)) = key {
                self.claim_done(of, key, loading.meta.id).await?;
            }
            Ok((loading, turns))
        };
        match copied.await {
            Ok((loading, turns)) => self.load(loading, vec![subscriber], LoadReason::Forked { turns }, reply),
            Err(refusal) => {
                if let Some((of, key)) = key
                    && let Err(error) = self.store.work().forget_answer(of, key.clone()).await
                {
                    tracing::warn!(%error, "the key of a refused request could not be removed");
                }
                reply(Err(refusal));
            }
        }
    }

    /// Copies the goal of a thread, with what was used so far. An active one waits for the fork's first turn.
    async fn copy_goal_to(&self, from: ThreadId, to: ThreadId) -> Result<(), Refusal> {
        if let Some(loaded) = self.get(from)
            && let Some(turn_id) = loaded.view.running_turn()
        {
            loaded.goals.flush(&turn_id).await;
        }
        let Some(goal) = self.store.work().goal(from).await? else { return Ok(()) };
        let stalled = (goal.status == ThreadGoalStatus::Active).then_some(ThreadGoalStall::Deferred);
        let copy = Goal { id: Uuid::now_v7(), stalled, turns: 0, idle_turns: 0, ..goal };
        Ok(self.store.work().change_goal(to, move |goal| *goal = Some(copy)).await?)
    }

    async fn copy(&self, source: Source, mut form: ForkForm, resolve: Resolve) -> Result<ForkedThread, Refusal> {
        let _lane = match &source {
            Source::Id(id) => Some(self.lanes.enter(*id).await),
            Source::Path(_) => None,
        };
        let (mut stored, reader) = match &source {
            Source::Id(id) => {
                if let Some((Persistence::Pending | Persistence::Ephemeral, _)) = self.persistence(*id) {
                    return Err(Refusal::no_rollout(*id));
                }
                let stored = self.store.find(*id, Some(false)).await.map_err(unloadable)?;
                (stored, self.store.open(*id).await.map_err(unloadable)?)
            }
            Source::Path(path) => self.adopt(path).await.map_err(|error| unloadable_at(path, error))?,
        };
        if let Some(meta) = history::meta(&*reader).await.map_err(unloadable)? {
            stored.meta = meta;
        }
        let cut = match form.boundary.take() {
            Some(_) if form.ephemeral => {
                return Err(Refusal::invalid("an ephemeral fork cannot end at a turn of its source"));
            }
            Some(boundary) => {
                let running = self.is_running(stored.id());
                let turns = history::turns(&*reader, running).await.map_err(unloadable)?;
                turns.len() - boundary.kept(&turns)?
            }
            None => 0,
        };
        self.copy_stored(&stored, &*reader, form, cut, resolve).await
    }

    async fn copy_stored(
        &self,
        stored: &StoredThread,
        source: &dyn Reader,
        form: ForkForm,
        cut: usize,
        resolve: Resolve,
    ) -> Result<ForkedThread, Refusal> {
        let changed = history::last_settings(source).await.map_err(unloadable)?;
        let last_turn = history::last_turn_context(source).await.map_err(unloadable)?;
        let basis = Basis { thread: stored, last_turn: last_turn.as_ref(), changed: changed.as_ref() };
        let resolved = resolve(Some(basis))?;
        let mut meta = new_meta(form.id.unwrap_or_else(ThreadId::new), &resolved);
        meta.placement.clone_from(&stored.meta.placement);
        let ResolvedSettings { settings, profile, on_disconnect, .. } = resolved;
        if form.ephemeral {
            let (mut thread, reader) = self.unstored(&meta, &settings, Persistence::Ephemeral);
            thread.preview = stored.preview.clone().unwrap_or_default();
            let turns = turns_for(meta.id, source).await?;
            // An ephemeral thread has no rollout to read it from.
            let conversation = Some(Conversation::load(source).await.map_err(unloadable)?);
            let view = View::new(thread, Persistence::Ephemeral);
            let prepared = PreparedThread::new(meta, view, reader, settings, profile);
            return Ok((PreparedThread { conversation, on_disconnect, ..prepared }, turns));
        }
        meta.forked_from_id = Some(stored.id());
        meta.attached_to = form.attach.then(|| stored.id());
        meta.preview.clone_from(&stored.meta.preview);
        meta.git = git::facts(&meta.cwd).await;
        let reader = self.store.create(meta.id, Timestamp::now());
        let mut batch = Batch::new();
        batch.push(&Record::SessionMeta(Box::new(meta.clone())))?;
        let mut writer = reader.writer().await?;
        let mut turns = copy_lines(source, meta.id, &mut *writer, batch).await?;
        if cut > 0 {
            let mut batch = Batch::new();
            let num_turns = u32::try_from(cut).unwrap_or(u32::MAX);
            batch.push(&Record::EventMsg(Event::ThreadRolledBack(ThreadRolledBack { num_turns })))?;
            writer.append(batch, Durability::Synced).await?;
            turns.truncate(turns.len().saturating_sub(cut));
        }
        drop(writer);
        full(&mut turns);
        let copy = self.store.find(meta.id, Some(false)).await?;
        let mut thread = self.wire(&copy, &settings.model_provider);
        thread.status = ThreadStatus::Idle;
        thread.project_id = self.inherit(stored.id(), meta.id).await;
        let view = View::new(thread, Persistence::Stored);
        let prepared = PreparedThread::new(meta, view, Some(reader), settings, profile);
        Ok((PreparedThread { on_disconnect, ..prepared }, turns))
    }
}

impl Threads {
    /// Gives a fork what it inherits of what users added to its source. Returns its project.
    async fn inherit(&self, from: ThreadId, to: ThreadId) -> Option<String> {
        let inherited = self.services.organiser.run(move |organiser| {
            organiser.forked(from, to)?;
            Ok(organiser.facts(&[to])?.remove(&to).and_then(|facts| facts.project_id))
        });
        inherited.await.unwrap_or_else(|error| {
            tracing::warn!(%error, thread = %to, "a fork did not inherit its project and attachments");
            None
        })
    }
}

/// Copies every line, known or not, and ends a turn that the source is in the middle of.
pub(crate) async fn copy_lines(
    source: &dyn Reader,
    id: ThreadId,
    writer: &mut dyn Writer,
    mut batch: Batch,
) -> Result<Vec<Turn>, Refusal> {
    let mut turns = Turns::new(id);
    let mut from = Position::START;
    loop {
        let window = source.records_after(from, PIECE).await.map_err(unloadable)?;
        for line in window.lines() {
            let Some(line) = Line::parse(line.bytes) else { continue };
            turns.push_line(&line);
            batch.push_copy(&line);
        }
        if window.is_empty() {
            break;
        }
        from = window.end();
        writer.append(std::mem::take(&mut batch), Durability::Flushed).await?;
    }
    let mut turns = turns.finish();
    if let Some(open) = turns.last_mut().filter(|turn| turn.status == TurnStatus::InProgress) {
        open.status = TurnStatus::Interrupted;
        batch.push(&Record::ResponseItem(message("user", prompts::TURN_ABORTED.into())))?;
        let aborted =
            TurnAborted { turn_id: Some(open.id.clone()), reason: AbortReason::Interrupted, times: Default::default() };
        batch.push(&Record::EventMsg(Event::TurnAborted(aborted)))?;
    }
    writer.append(batch, Durability::Synced).await?;
    interrupt_open(&mut turns);
    Ok(turns)
}

/// The source's turns with ids of the new thread.
async fn turns_for(id: ThreadId, source: &dyn Reader) -> Result<Vec<Turn>, Refusal> {
    let mut turns = Turns::new(id);
    history::each_line(source, |line| turns.push_line(line)).await.map_err(unloadable)?;
    let mut turns = turns.finish();
    interrupt_open(&mut turns);
    Ok(turns)
}

type ForkedThread = (PreparedThread, Vec<Turn>);
