//! Requests that are carried out once, however often they are sent. A client gives each a key; a request with the key
//! and the params of an earlier one gets its answer. Keys are stored before the request takes effect, beside the
//! rollouts, so they also count after a restart.

use loomd_store::{EarlierRequest, RequestKey, ThreadId};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::event_sink::Subscriber;
use crate::lanes::LaneGuard;
use crate::ownership::OwnedThread;
use crate::refusal::{Refusal, key_field};
use crate::resume::ResumeSource;
use crate::settings::Resolve;
use crate::thread::{Opened, Reply};
use crate::threads::Threads;
use crate::view::Persistence;

/// The most bytes of a key.
const MAX_KEY: usize = 512;

/// Returns the key of a request. `params` are all of its params, the key among them.
pub fn request_key(method: &'static str, key: &str, params: &impl Serialize) -> Result<RequestKey, Refusal> {
    let field = key_field(method);
    if key.is_empty() {
        return Err(Refusal::invalid(format!("{field} must not be empty")));
    }
    if key.len() > MAX_KEY {
        return Err(Refusal::invalid(format!("{field} must be at most {MAX_KEY} bytes")));
    }
    let body = serde_json::to_vec(params).map_err(|error| Refusal::failed(error.to_string()))?;
    Ok(RequestKey { method, key: key.to_owned(), body: Sha256::digest(&body).to_vec() })
}

/// The thread that a request with a key opens, and the right to open it.
pub struct ClaimedThread {
    pub id: ThreadId,
    /// An earlier request has opened it.
    pub exists: bool,
    pub(crate) lane: LaneGuard,
}

/// What is noted before the id of a thread that is being copied.
const COPYING: &str = "copying ";

fn claimed_id(request: &RequestKey, earlier: &EarlierRequest) -> Result<ThreadId, Refusal> {
    let EarlierRequest::Same { answer, .. } = earlier else { return Err(Refusal::idempotency_conflict(request)) };
    let id = answer.strip_prefix(COPYING).unwrap_or(answer);
    id.parse().map_err(|_| Refusal::failed("the stored id of a thread is invalid"))
}

fn is_copying(earlier: &EarlierRequest) -> bool {
    matches!(earlier, EarlierRequest::Same { answer, .. } if answer.starts_with(COPYING))
}

impl Threads {
    /// Claims a thread for a request of another thread, or of none, that opens one. `copies`: until
    /// [`Self::claim_done`] the thread may be there in part.
    pub(crate) async fn claim_thread(
        &self,
        of: Option<ThreadId>,
        request: &RequestKey,
        copies: bool,
    ) -> Result<ClaimedThread, Refusal> {
        let noted = |id: ThreadId| if copies { format!("{COPYING}{id}") } else { id.to_string() };
        let work = self.store.work();
        loop {
            let new = ThreadId::new();
            let Some(earlier) = work.claim_answer(of, request.clone(), noted(new)).await? else {
                return Ok(ClaimedThread { id: new, exists: false, lane: self.lanes.enter(new).await });
            };
            let id = claimed_id(request, &earlier)?;
            // A request that is opening it is waited for.
            let lane = self.lanes.enter(id).await;
            let is_loaded = self.is_loaded(id);
            let is_stored = is_loaded || self.store.find(id, None).await.is_ok();
            let is_copying = match work.earlier_request(of, request.clone()).await? {
                Some(now) if claimed_id(request, &now)? == id => is_copying(&now),
                _ => continue,
            };
            if !(is_copying && is_stored && !is_loaded) {
                return Ok(ClaimedThread { id, exists: is_stored, lane });
            }
            // The process that copied it ended before it was whole.
            work.forget_answer(of, request.clone()).await?;
        }
    }

    /// Notes that the thread of a request was copied whole.
    pub(crate) async fn claim_done(
        &self,
        of: Option<ThreadId>,
        request: &RequestKey,
        id: ThreadId,
    ) -> Result<(), Refusal> {
        Ok(self.store.work().note_answer(of, request.clone(), id.to_string(), String::new()).await?)
    }

    /// Opens the thread that an earlier request has opened, for the client that retries it.
    pub(crate) async fn open_claimed(
        &self,
        claimed: ClaimedThread,
        owned: Option<OwnedThread>,
        turns: bool,
        resolve: Resolve,
        subscriber: Subscriber,
        reply: Reply<Opened>,
    ) {
        let ClaimedThread { id, lane, .. } = claimed;
        // Dropped before the lane.
        let owned = owned;
        let turns = turns && !matches!(self.persistence(id), Some((Persistence::Pending | Persistence::Ephemeral, _)));
        if let Err(reply) = self.join(id, turns, None, None, subscriber, reply).await {
            self.resume_from(ResumeSource::Id(id, owned, lane), turns, None, None, resolve, subscriber, reply).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_must_not_be_empty_or_too_long_and_its_field_is_named() {
        let key = |method, key: &str| request_key(method, key, &json!({})).map_err(|refusal| refusal.to_string());
        assert_eq!(key("turn/start", ""), Err("clientUserMessageId must not be empty".into()));
        let long = "k".repeat(MAX_KEY + 1);
        assert_eq!(key("thread/start", &long), Err("idempotencyKey must be at most 512 bytes".into()));
        assert!(key("thread/start", &long[1..]).is_ok());
    }

    #[test]
    fn params_that_differ_have_other_digests() {
        let body = |text: &str| request_key("turn/start", "k", &json!({ "input": text })).unwrap().body;
        assert_eq!(body("a"), body("a"));
        assert_ne!(body("a"), body("b"));
    }
}
