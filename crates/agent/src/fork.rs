//! Forking: a new thread with the history of another one.

use jiff::Timestamp;
use loomd_protocol::{ThreadStatus, Turn, TurnStatus};
use loomd_store::rollout::{AbortReason, Event, Line, Record, TurnAborted};
use loomd_store::{Batch, Durability, Position, Reader, StoredThread, ThreadId, Writer};

use crate::conversation::Conversation;
use crate::event_sink::Subscriber;
use crate::git;
use crate::history;
use crate::message::message;
use crate::prompts;
use crate::refusal::Refusal;
use crate::resume::{unloadable, unloadable_at};
use crate::settings::{Basis, Resolve, ResolvedSettings};
use crate::thread::{LoadReason, Opened, Reply};
use crate::threads::{PreparedThread, Source, Threads, new_meta};
use crate::turns::{Turns, interrupt_open};
use crate::view::{Persistence, View};

/// The size of the chunks that are copied.
const PIECE: usize = 1024 * 1024;

impl Threads {
    /// Copies a stored thread into a new one. The source is not touched, and may be running.
    pub async fn fork(
        &self,
        source: Source,
        ephemeral: bool,
        resolve: Resolve,
        subscriber: Subscriber,
        reply: Reply<Opened>,
    ) {
        match self.copy(source, ephemeral, resolve).await {
            Ok((loading, turns)) => self.load(loading, vec![subscriber], LoadReason::Forked { turns }, reply),
            Err(refusal) => reply(Err(refusal)),
        }
    }

    async fn copy(&self, source: Source, ephemeral: bool, resolve: Resolve) -> Result<ForkedThread, Refusal> {
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
        self.copy_stored(&stored, &*reader, ephemeral, resolve).await
    }

    async fn copy_stored(
        &self,
        stored: &StoredThread,
        source: &dyn Reader,
        ephemeral: bool,
        resolve: Resolve,
    ) -> Result<ForkedThread, Refusal> {
        let resolved = resolve(Some(Basis { thread: stored, last_turn: None }))?;
        let mut meta = new_meta(ThreadId::new(), &resolved);
        let ResolvedSettings { settings, profile, .. } = resolved;
        if ephemeral {
            let (mut thread, reader) = self.unstored(&meta, &settings, Persistence::Ephemeral);
            thread.preview = stored.preview.clone().unwrap_or_default();
            let turns = turns_for(meta.id, source).await?;
            // An ephemeral thread has no rollout to read it from.
            let conversation = Some(Conversation::load(source).await.map_err(unloadable)?);
            let view = View::new(thread, Persistence::Ephemeral);
            return Ok((PreparedThread { meta, view, reader, settings, profile, conversation, position: None }, turns));
        }
        meta.forked_from_id = Some(stored.id());
        meta.preview.clone_from(&stored.meta.preview);
        meta.git = git::facts(&meta.cwd).await;
        let reader = self.store.create(meta.id, Timestamp::now());
        let mut batch = Batch::new();
        batch.push(&Record::SessionMeta(Box::new(meta.clone())))?;
        let turns = copy_lines(source, meta.id, &mut *reader.writer().await?, batch).await?;
        let copy = self.store.find(meta.id, Some(false)).await?;
        let mut thread = self.wire(&copy, &settings.model_provider);
        thread.status = ThreadStatus::Idle;
        let view = View::new(thread, Persistence::Stored);
        let reader = Some(reader);
        Ok((PreparedThread { meta, view, reader, settings, profile, conversation: None, position: None }, turns))
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
        let aborted = TurnAborted { turn_id: Some(open.id.clone()), reason: AbortReason::Interrupted };
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
