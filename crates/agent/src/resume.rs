//! Loading a stored thread, or joining one that is loaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loomd_protocol::{ContentItem, OnDisconnect, ResponseItem, Thread as WireThread, ThreadStatus};
use loomd_store::rollout::{Record, UserMessage};
use loomd_store::{Batch, Durability, Error, Failure, Reader, StoredThread, ThreadId};

use crate::event::EventId;
use crate::event_sink::Subscriber;
use crate::lanes::LaneGuard;
use crate::loading::{PreparedThread, new_meta};
use crate::message::text_of;
use crate::ownership::OwnedThread;
use crate::refusal::Refusal;
use crate::settings::{Basis, Resolve, ResolvedSettings};
use crate::thread::{LoadReason, Opened, Reply};
use crate::threads::{Source, Threads};
use crate::turns::full;
use crate::view::{Persistence, View};
use crate::{git, history, markers};

/// What is resumed.
pub(crate) enum ResumeSource {
    /// A thread, after earlier requests about it. Owned if several processes share it and it is not loaded.
    Id(ThreadId, Option<OwnedThread>, LaneGuard),
    /// A rollout on disk.
    Path(PathBuf),
    /// A new thread with this past.
    History(Vec<ResponseItem>),
}

impl Threads {
    /// Opens a stored thread, with its turns or without. One that is loaded is joined, and its settings
    /// stay what they are.
    pub async fn resume(
        &self,
        source: Source,
        turns: bool,
        resolve: Resolve,
        subscriber: Subscriber,
        reply: Reply<Opened>,
    ) {
        let source = match source {
            Source::Id(id) => ResumeSource::Id(id, None, self.lanes.enter(id).await),
            Source::Path(path) => ResumeSource::Path(path),
        };
        self.resume_from(source, turns, None, None, resolve, subscriber, reply).await;
    }

    #[expect(clippy::too_many_arguments, reason = "each is another field of the request")]
    /// Like [`Self::resume`]; `after` is the last event that the client has.
    pub(crate) async fn resume_from(
        &self,
        source: ResumeSource,
        turns: bool,
        after: Option<EventId>,
        on_disconnect: Option<OnDisconnect>,
        resolve: Resolve,
        subscriber: Subscriber,
        reply: Reply<Opened>,
    ) {
        // The thread is let go before the next request may act on it.
        let (stored, reader, reply, _lane, owned) = match source {
            ResumeSource::History(items) => return self.resume_history(items, resolve, subscriber, reply).await,
            ResumeSource::Id(id, owned, lane) => {
                if let Some((Persistence::Pending | Persistence::Ephemeral, _)) = self.persistence(id) {
                    return reply(Err(Refusal::no_rollout(id)));
                }
                let reply = self.with_facts(id, reply).await;
                let Err(reply) = self.join(id, turns, after, on_disconnect, subscriber, reply).await else { return };
                let owned = match owned {
                    None => self.own_without_turn(id, &lane).await,
                    owned => Ok(owned),
                };
                let owned = match owned {
                    Ok(owned) => owned,
                    Err(refusal) => return reply(Err(refusal)),
                };
                let opened = async { Ok((self.store.find(id, Some(false)).await?, self.store.open(id).await?)) };
                match opened.await {
                    Ok((stored, reader)) => (stored, reader, reply, lane, owned),
                    Err(error) => return reply(Err(unloadable(error))),
                }
            }
            ResumeSource::Path(path) => match self.adopt(&path).await {
                Ok((stored, reader)) => {
                    let lane = self.lanes.enter(stored.id()).await;
                    let reply = self.with_facts(stored.id(), reply).await;
                    let Err(reply) = self.join(stored.id(), turns, after, on_disconnect, subscriber, reply).await
                    else {
                        return;
                    };
                    (stored, reader, reply, lane, None)
                }
                Err(error) => return reply(Err(unloadable_at(&path, error))),
            },
        };
        let mut stored = stored;
        match prepare(&mut stored, &*reader, turns, resolve).await {
            Ok((resolved, turns)) => {
                let mut thread = self.wire(&stored, &resolved.settings.model_provider);
                thread.status = ThreadStatus::Idle;
                let loading = PreparedThread { owned, ..loading(stored, reader, thread, resolved) };
                self.load(loading, vec![subscriber], LoadReason::Resumed { turns, after }, reply);
            }
            Err(refusal) => reply(Err(refusal)),
        }
    }

    /// Loads a stored thread without a client.
    pub(crate) fn load_stored(
        &self,
        stored: StoredThread,
        reader: Arc<dyn Reader>,
        owned: Option<OwnedThread>,
        resolved: ResolvedSettings,
        reason: LoadReason,
        reply: Reply<Opened>,
    ) {
        let mut thread = self.wire(&stored, &resolved.settings.model_provider);
        thread.status = ThreadStatus::Idle;
        let loading = PreparedThread { owned, ..loading(stored, reader, thread, resolved) };
        self.load(loading, Vec::new(), reason, reply);
    }

    /// Takes a thread that several processes share, once it is no longer being unloaded here. `None` when it is loaded,
    /// or is this process's alone.
    pub(crate) async fn own(&self, id: ThreadId, _lane: &LaneGuard) -> Result<Option<OwnedThread>, Refusal> {
        let Some(ownership) = &self.services.ownership else { return Ok(None) };
        self.until_unloaded(id).await;
        match self.is_loaded(id) {
            true => Ok(None),
            false => OwnedThread::new(ownership, id).await.map(Some),
        }
    }

    /// The same for a thread without an unfinished turn. One with such a turn must not be loaded without it: its next
    /// turn would take the place of the unfinished one.
    async fn own_without_turn(&self, id: ThreadId, lane: &LaneGuard) -> Result<Option<OwnedThread>, Refusal> {
        let owned = self.own(id, lane).await?;
        if owned.is_some()
            && let Some(notes) = self.store.turn_notes()
            && !notes.read(id).await?.is_empty()
        {
            return Err(Refusal::LeaseLost(format!(
                "thread {id} has an unfinished turn that is not taken up yet; retry"
            )));
        }
        Ok(owned)
    }

    /// A reply that shows what users added to the thread.
    async fn with_facts(&self, id: ThreadId, reply: Reply<Opened>) -> Reply<Opened> {
        let facts = self.facts(id).await;
        Box::new(move |opened| {
            reply(opened.map(|mut opened| {
                facts.show_in(&mut opened.thread);
                opened
            }));
        })
    }

    /// Refuses a request with a history, or with the path of another rollout, for a thread that is loaded.
    pub fn refuse_mismatch(&self, id: ThreadId, history: bool, path: Option<&str>) -> Result<(), Refusal> {
        let Some((_, active)) = self.persistence(id) else { return Ok(()) };
        if history {
            return Err(Refusal::invalid(format!(
                "cannot resume thread {id} with history while it is already running"
            )));
        }
        match (path, active) {
            (Some(path), Some(active)) if path != active => Err(Refusal::invalid(format!(
                "cannot resume running thread {id} with mismatched path: requested `{path}`, active `{active}`"
            ))),
            _ => Ok(()),
        }
    }

    /// Opens a new thread with a history that the client sends.
    pub async fn resume_history(
        &self,
        items: Vec<ResponseItem>,
        resolve: Resolve,
        subscriber: Subscriber,
        reply: Reply<Opened>,
    ) {
        let id = ThreadId::new();
        let stored = async {
            if items.is_empty() {
                return Err(Refusal::invalid("history must not be empty"));
            }
            let resolved = resolve(None)?;
            let mut meta = new_meta(id, &resolved);
            meta.git = git::facts(&meta.cwd).await;
            meta.preview = items.iter().find_map(preview_of);
            let mut batch = Batch::new();
            batch.push(&Record::SessionMeta(Box::new(meta.clone())))?;
            for item in items {
                batch.push(&Record::ResponseItem(item))?;
            }
            let reader = self.store.create(meta.id, jiff::Timestamp::now());
            reader.writer().await?.append(batch, Durability::Synced).await?;
            Ok((self.store.find(meta.id, Some(false)).await?, reader, resolved))
        };
        match stored.await {
            Ok((stored, reader, resolved)) => {
                let mut thread = self.wire(&stored, &resolved.settings.model_provider);
                thread.status = ThreadStatus::Idle;
                let first = LoadReason::Resumed { turns: Vec::new(), after: None };
                self.load(loading(stored, reader, thread, resolved), vec![subscriber], first, reply);
            }
            Err(refusal) => reply(Err(refusal)),
        }
    }
}

/// The complete metadata, the settings and, if requested, the turns of a stored thread.
pub(crate) async fn prepare(
    stored: &mut StoredThread,
    reader: &dyn Reader,
    turns: bool,
    resolve: Resolve,
) -> Result<(ResolvedSettings, Vec<loomd_protocol::Turn>), Refusal> {
    if let Some(meta) = history::meta(reader).await.map_err(unloadable)? {
        stored.meta = meta;
    }
    let last_turn = history::last_turn_context(reader).await.map_err(unloadable)?;
    let changed = history::last_settings(reader).await.map_err(unloadable)?;
    let basis = Basis { thread: stored, last_turn: last_turn.as_ref(), changed: changed.as_ref() };
    let resolved = resolve(Some(basis))?;
    let mut turns = match turns {
        true => history::turns(reader, false).await.map_err(unloadable)?,
        false => Vec::new(),
    };
    full(&mut turns);
    Ok((resolved, turns))
}

/// The preview of a thread whose first item this is; `None` unless the user wrote it.
fn preview_of(item: &ResponseItem) -> Option<String> {
    let ResponseItem::Message { role, content, .. } = item else { return None };
    if role != "user" || markers::is_context(content) {
        return None;
    }
    let images = content.iter().filter_map(|part| match part {
        ContentItem::InputImage { image_url, .. } => Some(image_url.clone()),
        _ => None,
    });
    let message = UserMessage { message: text_of(item), images: Some(images.collect()), ..UserMessage::default() };
    loomd_store::preview(&message)
}

fn loading(
    stored: StoredThread,
    reader: Arc<dyn Reader>,
    thread: WireThread,
    resolved: ResolvedSettings,
) -> PreparedThread {
    let view = View::new(thread, Persistence::Stored);
    let ResolvedSettings { settings, profile, on_disconnect, .. } = resolved;
    PreparedThread { on_disconnect, ..PreparedThread::new(stored.meta, view, Some(reader), settings, profile) }
}

/// The refusal of a rollout that cannot be loaded, with the message that clients know.
pub(crate) fn unloadable(error: Error) -> Refusal {
    let place = match &error {
        Error::Empty { place } | Error::NoSessionMeta { place } | Error::Storage { place, .. } => place.clone(),
        _ => return error.into(),
    };
    unloadable_at(Path::new(&place), error)
}

pub(crate) fn unloadable_at(path: &Path, error: Error) -> Refusal {
    let reason = match &error {
        Error::Empty { .. } => "empty session file".to_owned(),
        Error::NoSessionMeta { .. } => "failed to parse thread ID from rollout file".to_owned(),
        Error::Storage { failure, reason, .. } if *failure != Failure::Unreachable => reason.clone(),
        _ => return error.into(),
    };
    Refusal::invalid(format!("failed to load rollout `{}`: {reason}", path.display()))
}
