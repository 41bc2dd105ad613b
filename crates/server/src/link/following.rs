//! The threads of other nodes that a client follows, from which links, and which of them have lost theirs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use loomd_protocol::Turn;
use loomd_store::ThreadId;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::followed::{Followed, LinkId, Seen};

const CLOSED: &str = "thread/closed";

#[derive(Default)]
pub(super) struct FollowedThreads {
    threads: HashMap<ThreadId, Followed>,
    moving: HashMap<ThreadId, ThreadMove>,
}

/// A thread that has lost its link.
struct ThreadMove {
    /// Cancelled when there is another one, or none.
    settled: CancellationToken,
    /// The link that it was found at and has lost meanwhile.
    again: Option<LinkId>,
}

impl FollowedThreads {
    /// A thread comes from this link from now on.
    pub fn follow(&mut self, thread: ThreadId, followed: Followed) {
        self.threads.insert(thread, followed);
    }

    /// A thread is not followed any longer; what the client has seen of it, if it was.
    pub fn unfollow(&mut self, thread: ThreadId) -> Option<Followed> {
        self.threads.remove(&thread)
    }

    pub fn get(&self, thread: ThreadId) -> Option<&Followed> {
        self.threads.get(&thread)
    }

    /// The threads that come from a link.
    pub fn of_link(&self, link: LinkId) -> Vec<ThreadId> {
        self.threads.iter().filter(|(_, followed)| followed.link == link).map(|(id, _)| *id).collect()
    }

    /// Notes an event of a thread. False when it is to be dropped: the client gets the thread's events from another link.
    /// What has no event id is not dropped, as it may be for all clients.
    pub fn note(
        &mut self,
        link: LinkId,
        thread: ThreadId,
        method: &str,
        params: Option<&RawValue>,
        event_id: Option<&str>,
    ) -> bool {
        let Some(followed) = self.threads.get_mut(&thread) else { return true };
        if followed.link != link {
            return event_id.is_none() && method != CLOSED;
        }
        followed.seen.note(method, params);
        if let Some(event_id) = event_id {
            followed.last_event = Some(event_id.to_owned());
        }
        if method == CLOSED {
            self.threads.remove(&thread);
        }
        true
    }

    /// A thread goes on at a link whose answer has these turns. What the client had seen before, if what it has missed
    /// does not follow as events.
    pub fn found(
        &mut self,
        thread: ThreadId,
        link: LinkId,
        event_id: Option<String>,
        turns: &[Turn],
        open_items: &[String],
        is_complete: bool,
    ) -> Option<Seen> {
        // The client may have unsubscribed meanwhile.
        let followed = self.threads.get_mut(&thread)?;
        followed.link = link;
        if is_complete {
            return None;
        }
        followed.last_event = event_id;
        Some(std::mem::replace(&mut followed.seen, Seen::of_snapshot(turns, open_items)))
    }

    /// A thread has lost a link. True when another one has to be looked for; [`Self::moved`] follows then.
    pub fn lose(&mut self, thread: ThreadId, link: LinkId) -> bool {
        if self.threads.get(&thread).is_none_or(|followed| followed.link != link) {
            return false;
        }
        match self.moving.entry(thread) {
            Entry::Occupied(mut entry) => {
                entry.get_mut().again = Some(link);
                false
            }
            Entry::Vacant(entry) => {
                entry.insert(ThreadMove { settled: CancellationToken::new(), again: None });
                true
            }
        }
    }

    /// A link was found for a thread, or will not be. The link that it was found at, if that is lost by now.
    pub fn moved(&mut self, thread: ThreadId) -> Option<LinkId> {
        let moving = self.moving.remove(&thread)?;
        moving.settled.cancel();
        moving.again
    }

    pub fn is_moving(&self, thread: ThreadId) -> bool {
        self.moving.contains_key(&thread)
    }

    /// Cancelled when a thread that has lost its link has another one, or none.
    pub fn settled(&self, thread: ThreadId) -> Option<CancellationToken> {
        self.moving.get(&thread).map(|moving| moving.settled.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: LinkId = LinkId(1);
    const SECOND: LinkId = LinkId(2);
    const THIRD: LinkId = LinkId(3);

    fn following(thread: ThreadId, link: LinkId) -> FollowedThreads {
        let mut following = FollowedThreads::default();
        following.follow(thread, Followed { link, last_event: Some("7".into()), seen: Seen::default() });
        following
    }

    #[test]
    fn a_thread_that_loses_its_link_is_looked_for_once() {
        let thread = ThreadId::new();
        let mut following = following(thread, FIRST);
        assert!(!following.lose(thread, SECOND), "it does not come from there");
        assert!(following.lose(thread, FIRST));
        assert!(!following.lose(thread, FIRST), "it is being looked for");
        // Links that are tried meanwhile and fail are not its own.
        assert!(!following.lose(thread, SECOND));
        assert_eq!(following.found(thread, THIRD, None, &[], &[], true), None);
        assert_eq!(following.moved(thread), Some(FIRST));
        assert!(!following.lose(thread, FIRST), "it has another link now");
        assert!(!following.is_moving(thread));
    }

    #[test]
    fn a_link_that_is_lost_as_soon_as_it_is_found_is_looked_for_again() {
        let thread = ThreadId::new();
        let mut following = following(thread, FIRST);
        assert!(following.lose(thread, FIRST));
        let settled = following.settled(thread).unwrap();
        following.found(thread, SECOND, None, &[], &[], true);
        assert!(!following.lose(thread, SECOND));
        assert_eq!(following.moved(thread), Some(SECOND));
        assert!(settled.is_cancelled());
        assert!(following.lose(thread, SECOND));
    }

    #[test]
    fn events_count_from_the_link_of_their_thread_only() {
        let thread = ThreadId::new();
        let mut following = following(thread, FIRST);
        assert!(!following.note(SECOND, thread, "turn/started", None, Some("8")));
        assert!(following.note(SECOND, thread, "thread/status/changed", None, None), "it is for everyone");
        assert!(!following.note(SECOND, thread, "thread/closed", None, None), "not where it is");
        assert_eq!(following.get(thread).unwrap().last_event.as_deref(), Some("7"));
        assert!(following.note(FIRST, thread, "turn/started", None, Some("8")));
        assert_eq!(following.get(thread).unwrap().last_event.as_deref(), Some("8"));
        assert!(following.note(FIRST, ThreadId::new(), "turn/started", None, Some("9")), "it is not followed");
        assert!(following.note(FIRST, thread, "thread/closed", None, None));
        assert_eq!(following.get(thread), None);
    }

    #[test]
    fn what_a_client_has_seen_is_given_back_when_its_events_do_not_follow() {
        let thread = ThreadId::new();
        let mut following = following(thread, FIRST);
        let before = following.found(thread, SECOND, Some("9".into()), &[], &[], false);
        assert_eq!(before, Some(Seen::default()));
        let now = following.get(thread).unwrap();
        assert_eq!((now.link, now.last_event.as_deref()), (SECOND, Some("9")));
        assert_eq!(following.of_link(SECOND), [thread]);
    }
}
