//! What a thread keeps between turns.

use std::sync::Arc;

use loomd_model::Session;
use loomd_protocol::{RateLimitSnapshot, ThreadItem};
use loomd_store::rollout::Record;

use crate::conversation::Conversation;
use crate::services::Services;
use crate::settings::Profile;
use crate::turn::usage;

/// The conversation and the provider session of a thread, while no turn owns them.
pub(crate) struct Memory {
    pub conversation: Option<Conversation>,
    pub session: Session,
    pub rate_limits: RateLimitSnapshot,
}

impl Memory {
    pub fn new(profile: &Profile, services: &Services, conversation: Option<Conversation>) -> Self {
        let (provider, http) = (Arc::clone(&profile.provider), Arc::clone(&services.http));
        let session = Session::new(provider, http, profile.identity.clone());
        Self { conversation, session, rate_limits: usage::no_limits() }
    }
}

/// The end of an item that could not be recorded yet. It is published once it has been.
pub(crate) struct UnwrittenItem {
    pub turn_id: String,
    pub item: ThreadItem,
    pub record: Record,
}
