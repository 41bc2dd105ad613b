//! The session as the thread's task holds it.

use std::future::pending;

use loomd_protocol::RealtimeConversationVersion;
use loomd_realtime::{Event, Session};

/// A session that is being opened, or is open.
pub(crate) struct RealtimeSession {
    pub session: Session,
    pub session_id: String,
    pub version: RealtimeConversationVersion,
}

impl RealtimeSession {
    /// The next event of the session; `None` when its task broke down. Never resolves when there is none.
    pub async fn next(session: &mut Option<Self>) -> Option<Event> {
        match session {
            Some(session) => session.session.next().await,
            None => pending().await,
        }
    }
}
