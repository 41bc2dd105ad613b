//! What a running turn and its tools share: who they work for, telling it, and writing it down first.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use loomd_model::ModelInfo;
use loomd_protocol::{
    CodexErrorInfo, ErrorNotification, ItemCompletedNotification, ItemStartedNotification, ServerNotification,
    ThreadItem, TurnError,
};
use loomd_store::rollout::{Event, Record};
use loomd_store::{Durability, ThreadId};
use tokio_util::sync::CancellationToken;

use crate::hub::Hub;
use crate::recorder::Recorder;
use crate::settings::{Profile, Settings};

/// The surroundings of one turn.
pub(crate) struct TurnCx {
    pub thread: ThreadId,
    pub thread_id: String,
    pub turn_id: String,
    /// As they were when the turn began.
    pub settings: Settings,
    pub profile: Arc<Profile>,
    pub model: ModelInfo,
    pub hub: Arc<Hub>,
    /// The turn is to end, now.
    pub cancel: CancellationToken,
    log: Arc<Log>,
}

/// Where a turn's records go.
struct Log {
    recorder: tokio::sync::Mutex<Recorder>,
    /// Why records could not be written; the turn fails then.
    broken: Mutex<Option<String>>,
}

impl TurnCx {
    #[expect(clippy::too_many_arguments, reason = "each is another piece of a turn's surroundings")]
    pub fn new(
        thread: ThreadId,
        turn_id: String,
        settings: Settings,
        profile: Arc<Profile>,
        model: ModelInfo,
        hub: Arc<Hub>,
        cancel: CancellationToken,
        recorder: Recorder,
    ) -> Self {
        Self {
            thread,
            thread_id: thread.to_string(),
            turn_id,
            settings,
            profile,
            model,
            hub,
            cancel,
            log: Arc::new(Log { recorder: tokio::sync::Mutex::new(recorder), broken: Mutex::default() }),
        }
    }

    /// The same turn with other settings, for a part of it that has its own.
    pub fn with(&self, settings: Settings) -> Self {
        Self {
            thread: self.thread,
            thread_id: self.thread_id.clone(),
            turn_id: self.turn_id.clone(),
            model: self.profile.model(&settings.model),
            settings,
            profile: Arc::clone(&self.profile),
            hub: Arc::clone(&self.hub),
            cancel: self.cancel.clone(),
            log: Arc::clone(&self.log),
        }
    }

    /// How long the rollout is, as far as it was written here.
    pub async fn written(&self) -> u64 {
        self.log.recorder.lock().await.len
    }

    pub async fn tell(&self, notification: ServerNotification) {
        self.hub.tell(notification).await;
    }

    /// Shows that something has begun.
    pub async fn started(&self, item: ThreadItem) {
        self.tell(ServerNotification::ItemStarted(ItemStartedNotification {
            item,
            thread_id: self.thread_id.clone(),
            turn_id: self.turn_id.clone(),
            started_at_ms: Timestamp::now().as_millisecond(),
        }))
        .await;
    }

    /// Writes down that something is done, then shows it.
    pub async fn completed(&self, item: ThreadItem, event: Option<Event>) {
        if let Some(event) = event {
            self.record(&[Record::EventMsg(event)]).await;
        } else {
            self.flush(Durability::Flushed).await;
        }
        self.show_completed(item).await;
    }

    /// Shows that something is done. What it rests on has been written.
    pub async fn show_completed(&self, item: ThreadItem) {
        self.tell(ServerNotification::ItemCompleted(ItemCompletedNotification {
            item,
            thread_id: self.thread_id.clone(),
            turn_id: self.turn_id.clone(),
            completed_at_ms: Timestamp::now().as_millisecond(),
        }))
        .await;
    }

    /// Writes records down.
    pub async fn record(&self, records: &[Record]) {
        self.note(records).await;
        self.flush(Durability::Flushed).await;
    }

    /// Takes records that are written with the next ones.
    pub async fn note(&self, records: &[Record]) {
        let mut recorder = self.log.recorder.lock().await;
        for record in records {
            if let Err(error) = recorder.note(record) {
                self.broke(error.to_string());
            }
        }
    }

    /// Waits until everything noted is written.
    pub async fn flush(&self, durability: Durability) {
        if let Err(error) = self.log.recorder.lock().await.flush(durability).await {
            self.broke(error.to_string());
        }
    }

    fn broke(&self, why: String) {
        tracing::error!(thread = %self.thread_id, why, "a record could not be written");
        self.log.broken.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }

    /// What became of writing, if it failed.
    pub fn broken(&self) -> Option<TurnError> {
        let why = self.log.broken.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(TurnError {
            message: format!("the thread could not be saved: {why}"),
            codex_error_info: Some(CodexErrorInfo::Other),
            additional_details: None,
        })
    }

    /// Shows an error of this turn.
    pub async fn error(&self, error: TurnError, will_retry: bool) {
        self.tell(ServerNotification::Error(ErrorNotification {
            error,
            will_retry,
            thread_id: self.thread_id.clone(),
            turn_id: self.turn_id.clone(),
        }))
        .await;
    }
}
