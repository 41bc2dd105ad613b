//! Requests to a thread that are carried out once, however often they are sent.

use loomd_store::{EarlierRequest, Position, RequestKey, WorkStore};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::op::Reply;
use super::state::Thread;
use crate::refusal::Refusal;
use crate::view::Persistence;

/// The size of the pieces in which a rollout is searched.
const PIECE: usize = 1024 * 1024;

/// What the rollout has once a request has taken effect.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Trace {
    /// The user message, with the key as its id.
    Message,
    /// The turn.
    Turn(String),
    /// Not known: it may have taken effect although nothing was recorded.
    Unknown,
}

impl Trace {
    /// A text that occurs in the rollout.
    fn text(&self, request: &RequestKey) -> Option<String> {
        match self {
            Self::Message => Some(serde_json::Value::from(request.key.as_str()).to_string()),
            Self::Turn(turn_id) => Some(turn_id.clone()),
            Self::Unknown => None,
        }
    }
}

/// What is noted about a request.
#[derive(Serialize, Deserialize)]
struct Noted<T> {
    answer: T,
    trace: Trace,
}

impl Thread {
    /// Replies as to the earlier request with the same key, or with the refusal of a key that was used for another.
    /// Gives the reply back when the request is to be carried out.
    pub(super) async fn unanswered<T: DeserializeOwned>(
        &self,
        request: Option<&RequestKey>,
        reply: Reply<T>,
    ) -> Option<Reply<T>> {
        let Some(request) = request else { return Some(reply) };
        match self.earlier_answer(request).await {
            Ok(None) => return Some(reply),
            Ok(Some(answer)) => reply(Ok(answer)),
            Err(refusal) => reply(Err(refusal)),
        }
        None
    }

    async fn earlier_answer<T: DeserializeOwned>(&self, request: &RequestKey) -> Result<Option<T>, Refusal> {
        let (answer, epoch) = match self.keys().earlier_request(Some(self.id), request.clone()).await? {
            None => return Ok(None),
            Some(EarlierRequest::Different) => return Err(Refusal::idempotency_conflict(request)),
            Some(EarlierRequest::Same { answer, epoch }) => (answer, epoch),
        };
        let Noted { answer, trace } =
            serde_json::from_str(&answer).map_err(|error| Refusal::failed(error.to_string()))?;
        // A process that ended right after it noted the answer may have done nothing else.
        match trace.text(request).filter(|_| epoch != self.events.epoch()) {
            Some(trace) if !self.taken_up.contains(&trace) && !self.is_recorded(&trace).await? => Ok(None),
            _ => Ok(Some(answer)),
        }
    }

    /// Notes the answer to a request before it takes effect.
    pub(super) async fn note_answer(
        &self,
        request: Option<&RequestKey>,
        answer: &impl Serialize,
        trace: Trace,
    ) -> Result<(), Refusal> {
        let Some(request) = request else { return Ok(()) };
        let answer =
            serde_json::to_string(&Noted { answer, trace }).map_err(|error| Refusal::failed(error.to_string()))?;
        Ok(self.keys().note_answer(Some(self.id), request.clone(), answer, self.events.epoch()).await?)
    }

    /// Forgets a request that is refused after its answer was noted. Where processes share the thread and this one has
    /// lost its lease, or the store has failed, the request may have taken effect: nothing is forgotten and the thread
    /// is given up, so that its next holder finds out.
    pub(super) async fn forget_answer(&self, request: Option<&RequestKey>, refusal: &Refusal) {
        let is_unknown = matches!(refusal, Refusal::LeaseLost(_) | Refusal::Failed(_));
        if is_unknown && self.let_go.is_shared() {
            return self.let_go.abandon();
        }
        if matches!(refusal, Refusal::LeaseLost(_)) {
            return;
        }
        let Some(request) = request else { return };
        if let Err(error) = self.keys().forget_answer(Some(self.id), request.clone()).await {
            tracing::warn!(%error, thread = %self.id, "the key of a refused request could not be removed");
        }
    }

    /// Where keys are kept: as long as the thread.
    fn keys(&self) -> &WorkStore {
        match self.view.persistence() {
            Persistence::Ephemeral => &self.ephemeral_keys,
            Persistence::Pending | Persistence::Stored => self.store.work(),
        }
    }

    /// Whether a text occurs in the rollout.
    async fn is_recorded(&self, text: &str) -> Result<bool, Refusal> {
        if self.view.persistence() != Persistence::Stored {
            return Ok(false);
        }
        let reader = self.reader()?;
        let mut from = Position::START;
        loop {
            let window = reader.records_after(from, PIECE).await?;
            let has = |line: &[u8]| std::str::from_utf8(line).is_ok_and(|line| line.contains(text));
            if window.lines().any(|line| has(line.bytes)) {
                return Ok(true);
            }
            if window.is_empty() {
                return Ok(false);
            }
            from = window.end();
        }
    }
}
