//! Requests about the goal of a thread, loaded or not.

use loomd_protocol::{SubAgentSource, ThreadGoal};
use loomd_store::rollout::{Event, Record, Source as Origin, ThreadGoalUpdated};
use loomd_store::{Batch, Durability, Error, StoredThread, ThreadId};

use crate::goals::{self, GoalChange, GoalLimits, cleared_notification, updated_notification};
use crate::refusal::Refusal;
use crate::thread::{Op, Reply};
use crate::threads::Threads;
use crate::view::Persistence;

/// The refusal of input for an agent that only its parent may direct.
pub(crate) const NO_DIRECT_INPUT: &str = "direct app-server input is not allowed for multi-agent v2 sub-agents";

impl Threads {
    /// Sets the goal of a thread. `limits` are those of a thread that is not loaded.
    pub async fn set_goal(&self, id: ThreadId, change: GoalChange, limits: GoalLimits, reply: Reply<ThreadGoal>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(refusal) = self.check_goal(id, true).await {
            return reply(Err(refusal));
        }
        if let Err(Op::SetGoal { change, reply }) = self.send(id, Op::SetGoal { change, reply }).await {
            self.set_stored_goal(id, change, limits, reply).await;
        }
    }

    pub async fn goal(&self, id: ThreadId) -> Result<Option<ThreadGoal>, Refusal> {
        let _lane = self.lanes.enter(id).await;
        self.check_goal(id, false).await?;
        Ok(self.store.work().goal(id).await?.map(|goal| goal.to_wire(id)))
    }

    /// Removes the goal of a thread; whether there was one.
    pub async fn clear_goal(&self, id: ThreadId, reply: Reply<bool>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(refusal) = self.check_goal(id, true).await {
            return reply(Err(refusal));
        }
        if let Err(Op::ClearGoal(reply)) = self.send(id, Op::ClearGoal(reply)).await {
            match self.store.work().change_goal(id, |goal| goal.take().is_some()).await {
                Ok(cleared) => {
                    reply(Ok(cleared));
                    if cleared {
                        self.broadcast_about(cleared_notification(id)).await;
                    }
                }
                Err(error) => reply(Err(error.into())),
            }
        }
    }

    async fn set_stored_goal(&self, id: ThreadId, change: GoalChange, limits: GoalLimits, reply: Reply<ThreadGoal>) {
        let now = jiff::Timestamp::now().as_millisecond();
        let set = self.store.work().change_goal(id, move |goal| goals::set(goal, change, limits, id, now));
        match set.await.map_err(Refusal::from).and_then(|set| set) {
            Ok(goal) => {
                self.copy_goal(id, goal.to_wire(id)).await;
                reply(Ok(goal.to_wire(id)));
                self.broadcast_about(updated_notification(id, &goal, None)).await;
            }
            Err(refusal) => reply(Err(refusal)),
        }
    }

    /// Copies a goal to the rollout, unless another process is writing to it.
    async fn copy_goal(&self, id: ThreadId, goal: ThreadGoal) {
        let copied = async {
            let mut batch = Batch::new();
            let updated = ThreadGoalUpdated { thread_id: id.to_string(), goal };
            batch.push(&Record::EventMsg(Event::ThreadGoalUpdated(updated)))?;
            self.store.open(id).await?.writer().await?.append(batch, Durability::Flushed).await
        };
        if let Err(error) = copied.await {
            tracing::debug!(thread = %id, %error, "the goal is not copied to the rollout");
        }
    }

    /// Refuses threads that have no goals.
    async fn check_goal(&self, id: ThreadId, changes: bool) -> Result<(), Refusal> {
        let ephemeral = || Refusal::invalid(format!("ephemeral thread does not support goals: {id}"));
        match self.get(id) {
            Some(loaded) if loaded.view.persistence() == Persistence::Ephemeral => Err(ephemeral()),
            Some(loaded) => {
                let source = loaded.view.thread().source;
                if changes {
                    direct_input(matches!(&source, loomd_protocol::SessionSource::SubAgent(agent) if has_path(agent)))
                } else {
                    Ok(())
                }
            }
            None => {
                let stored = self.store.find(id, Some(false)).await.map_err(|error| match error {
                    Error::NotFound { .. } => Refusal::not_found(id),
                    other => other.into(),
                })?;
                if changes { direct_input(is_directed(&stored)) } else { Ok(()) }
            }
        }
    }
}

/// Whether a stored thread is that of an agent which only its parent may direct.
pub(crate) fn is_directed(stored: &StoredThread) -> bool {
    matches!(&stored.meta.source, Origin::SubAgent(agent) if has_path(agent))
}

/// Agents that are addressed by a path take no input of clients.
pub(crate) fn has_path(agent: &SubAgentSource) -> bool {
    matches!(agent, SubAgentSource::ThreadSpawn { agent_path: Some(_), .. })
}

/// Refuses input of clients for an agent that only its parent may direct.
pub(crate) fn direct_input(directed: bool) -> Result<(), Refusal> {
    if directed { Err(Refusal::invalid(NO_DIRECT_INPUT)) } else { Ok(()) }
}
