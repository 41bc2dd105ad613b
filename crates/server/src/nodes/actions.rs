//! What a node decides is done here: operations of the database, verdicts about requests, and what becomes of threads.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use loomd_ownership::{Action, DbOp, DbReply, Input, PeerMessage, Session};
use loomd_store::{Result, SharedStore, Taking};
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

use super::{NodeHost, Nodes, Verdict, thread_id};

/// How often a node is given the time.
const TICK: Duration = Duration::from_millis(100);

/// Gives the node the time until it has drained.
pub(super) async fn tick(nodes: Arc<Nodes>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !nodes.drained.is_cancelled() {
        ticks.tick().await;
        nodes.input(Input::Tick);
    }
}

impl Nodes {
    /// Does or starts what the node wants done. Never waits, and gives no input before it returns.
    pub(super) fn act(self: &Arc<Self>, action: Action) {
        match action {
            Action::Db { op, request } => {
                let nodes = Arc::clone(self);
                tokio::spawn(async move {
                    let reply = nodes.operate(request).await;
                    nodes.input(Input::Db { op, reply });
                });
            }
            Action::Send { to, message } => match message {
                PeerMessage::Forward { key, .. } => {
                    self.counters.forwarded.fetch_add(1, Ordering::Relaxed);
                    self.decide(key, Verdict::Forward(to));
                }
                PeerMessage::NotOwner { key } => self.decide(key, Verdict::NotOwner),
                // The answer itself is on its way.
                PeerMessage::Answered { .. } => {}
            },
            Action::Run { key, epoch, .. } => self.decide(key, Verdict::Run { epoch }),
            Action::Answer { key, answer } => self.decide(key, Verdict::Refused(answer)),
            Action::Own { thread, taken_over: true, .. } => {
                self.counters.taken_over.fetch_add(1, Ordering::Relaxed);
                if let Some(host) = self.host() {
                    host.take_up(thread_id(thread));
                }
            }
            Action::Own { .. } => {}
            Action::Stop { thread } => {
                let id = thread_id(thread);
                tracing::debug!(thread = %id, "a thread is no longer this node's");
                if let Some(shared) = self.shared() {
                    shared.abandon(id);
                }
                if let Some(host) = self.host() {
                    host.stop(id);
                }
            }
            Action::LetGo { thread } => {
                if let Some(host) = self.host() {
                    host.let_go(thread_id(thread));
                }
            }
            Action::Drained => self.drained.cancel(),
        }
    }

    pub(super) fn host(&self) -> Option<Arc<dyn NodeHost>> {
        self.host.get()?.upgrade()
    }

    async fn operate(&self, request: DbOp) -> DbReply {
        let Some(shared) = self.shared() else { return DbReply::Failed };
        match self.try_operate(shared, request).await {
            Ok(reply) => reply,
            Err(error) => {
                tracing::warn!(%error, "the database of the nodes could not be used");
                DbReply::Failed
            }
        }
    }

    async fn try_operate(&self, shared: &dyn SharedStore, request: DbOp) -> Result<DbReply> {
        let done = |()| DbReply::Ok;
        match request {
            DbOp::Register { session } => {
                let facts = self.facts.get().cloned().unwrap_or_default();
                *self.session.lock() = Some(uuid(session));
                shared.register(uuid(session), facts).await.map(done)
            }
            DbOp::Renew { session } => {
                let is_live = shared.renew(uuid(session)).await?;
                Ok(if is_live { DbReply::Ok } else { DbReply::NoSession })
            }
            DbOp::End { session } => shared.end(uuid(session)).await.map(done),
            DbOp::Take { thread, session } => Ok(match shared.take(thread_id(thread), uuid(session)).await? {
                Taking::Taken { epoch } => DbReply::Taken { epoch },
                Taking::Held { session } => DbReply::Held { session: Session::from_bits(session.as_u128()) },
                Taking::NoSession => DbReply::NoSession,
            }),
            DbOp::Lookup { thread } => Ok(match shared.owner(thread_id(thread)).await? {
                Some(session) => DbReply::Held { session: Session::from_bits(session.as_u128()) },
                None => DbReply::Free,
            }),
            DbOp::Release { thread, session, epoch } => {
                shared.release(thread_id(thread), uuid(session), epoch).await.map(done)
            }
        }
    }
}

fn uuid(session: Session) -> Uuid {
    Uuid::from_u128(session.to_bits())
}
