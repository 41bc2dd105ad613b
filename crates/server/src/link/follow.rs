//! What becomes of the threads that a client follows when their node is lost: this node takes a thread over, or follows
//! it at its new node. Either way the client is sent what it has missed, and the events go on.

use std::sync::Arc;
use std::time::Duration;

use loomd_agent::{Caller, Opened, Refusal, Reply, ResumeThread, Resumed, Subscriber};
use loomd_ownership::{Answer, Need, NodeId};
use loomd_protocol::{RpcError, ServerNotification, ThreadClosedNotification, Turn};
use loomd_store::ThreadId;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::followed::{LinkId, Seen};
use super::{Link, Links, Outcome, PendingKind, catch_up};
use crate::nodes::{Requester, Ticket, Verdict};
use crate::refusals::is_owner_lost;

/// How long a node for a thread is looked for. Then the client is told that the thread is closed.
const GIVE_UP: Duration = Duration::from_secs(300);

/// The pause before a node is looked for again.
const RETRY: Duration = Duration::from_millis(500);

/// How a try to follow a thread ended.
enum Attempt {
    Done,
    Again,
    /// It cannot be followed, for this reason.
    Failed(String),
}

impl Links {
    /// A link has ended.
    pub(super) fn lost(self: &Arc<Self>, link: &Arc<Link>) {
        self.withdraw_requests(link);
        let threads = self.following.lock().of_link(link.id);
        for thread in threads {
            self.move_thread(link.id, thread);
        }
    }

    /// A thread that the client follows does not come from a link any more.
    pub(super) fn move_thread(self: &Arc<Self>, from: LinkId, thread: ThreadId) {
        if !self.following.lock().lose(thread, from) {
            return;
        }
        let links = Arc::clone(self);
        tokio::spawn(async move {
            let followed = tokio::select! {
                followed = links.follow(thread) => followed,
                () = links.ended.cancelled() => Ok(()),
            };
            if let Err(reason) = followed {
                warn!(%thread, reason, "a thread that a client follows has no node");
                links.following.lock().unfollow(thread);
                let closed = ThreadClosedNotification { thread_id: thread.to_string() };
                links.notify(ServerNotification::ThreadClosed(closed));
            }
            let lost = links.following.lock().moved(thread);
            if let Some(lost) = lost {
                links.move_thread(lost, thread);
            }
        });
    }

    /// Finds the node of a thread, or makes this one it, and subscribes the client there.
    async fn follow(self: &Arc<Self>, thread: ThreadId) -> Result<(), String> {
        let until = Instant::now() + GIVE_UP;
        loop {
            if self.following.lock().get(thread).is_none() {
                return Ok(());
            }
            let reason = match self.try_follow(thread).await {
                Attempt::Done => return Ok(()),
                Attempt::Again => "no node has it".to_owned(),
                Attempt::Failed(reason) => return Err(reason),
            };
            if Instant::now() >= until {
                return Err(reason);
            }
            sleep(RETRY).await;
        }
    }

    async fn try_follow(self: &Arc<Self>, thread: ThreadId) -> Attempt {
        // A node that cannot run the thread leaves it to those that can.
        let can_run = self.nodes.can_run(thread).await;
        let need = if can_run { Need::Owner } else { Need::OwnerIfAny };
        let mut ticket = self.nodes.request(Requester::Client, thread, need, true);
        loop {
            match ticket.next().await {
                Verdict::Run { epoch: Some(_) } => return self.follow_here(thread).await,
                Verdict::Run { epoch: None } => {
                    return match self.nodes.other_for(thread).await {
                        Some(node) => self.follow_at(&ticket, node, thread).await.unwrap_or(Attempt::Again),
                        None => Attempt::Again,
                    };
                }
                Verdict::Forward(node) => {
                    if let Some(attempt) = self.follow_at(&ticket, node, thread).await {
                        return attempt;
                    }
                }
                Verdict::NotOwner | Verdict::Refused(Answer::Unavailable | Answer::Unknown | Answer::Busy) => {
                    return Attempt::Again;
                }
                // The client is told to connect elsewhere.
                Verdict::Refused(Answer::Moved) => return Attempt::Failed("this node is draining".into()),
            }
        }
    }

    /// Follows a thread at another node; `None` when the next verdict says where it is.
    async fn follow_at(self: &Arc<Self>, ticket: &Ticket, node: NodeId, thread: ThreadId) -> Option<Attempt> {
        let last_event = self.following.lock().get(thread).and_then(|followed| followed.last_event.clone());
        let params = match last_event {
            Some(last) => json!({ "threadId": thread.to_string(), "afterEvent": last }),
            None => json!({ "threadId": thread.to_string() }),
        };
        let called = self.link(node).call("thread/resume", &params.to_string(), PendingKind::Follow { thread });
        match called.await.unwrap_or(Outcome::Lost) {
            Outcome::Answered => {
                ticket.answered(node);
                Some(Attempt::Done)
            }
            Outcome::NotOwner | Outcome::Unreached(_) => {
                ticket.not_owner(node);
                None
            }
            Outcome::Lost => {
                ticket.lost();
                None
            }
            Outcome::Refused(error) => {
                ticket.answered(node);
                let is_passing = error.code == RpcError::INTERNAL || is_owner_lost(&error);
                Some(if is_passing { Attempt::Again } else { Attempt::Failed(error.message) })
            }
        }
    }

    /// Goes on with a thread that this node has taken over.
    async fn follow_here(self: &Arc<Self>, thread: ThreadId) -> Attempt {
        let Some(handshake) = self.handshake.get() else { return Attempt::Failed("the client is gone".into()) };
        let caller =
            Caller { client: Arc::clone(&handshake.client.identity), subscriber: Subscriber(self.connection.0) };
        let request = ResumeThread { thread_id: thread.to_string(), include_turns: true, ..ResumeThread::default() };
        let (done, resumed) = oneshot::channel();
        let links = Arc::clone(self);
        // Called before the events that follow are sent.
        let reply: Reply<Resumed> = Box::new(move |resumed| {
            let outcome = resumed.map(|resumed| links.follows_here(thread, &resumed.opened));
            _ = done.send(outcome);
        });
        self.app.agent.resume(request, caller, reply).await;
        match resumed.await {
            Ok(Ok(())) => {
                self.nodes.note_taken_over();
                info!(%thread, "a thread that a client follows was taken over");
                Attempt::Done
            }
            Ok(Err(Refusal::LeaseLost(_) | Refusal::Failed(_))) => Attempt::Again,
            Ok(Err(refusal)) => Attempt::Failed(refusal.to_string()),
            Err(_) => Attempt::Again,
        }
    }

    fn follows_here(&self, thread: ThreadId, opened: &Opened) {
        let Some(followed) = self.following.lock().unfollow(thread) else { return };
        self.catch_up(thread, &followed.seen, &opened.thread.turns, &opened.open_items);
    }

    /// Sends the client the events between what it has seen and a snapshot.
    pub(super) fn catch_up(&self, thread: ThreadId, seen: &Seen, turns: &[Turn], open_items: &[String]) {
        for event in catch_up::missed(&thread.to_string(), seen, turns, open_items) {
            self.notify(event);
        }
    }
}
