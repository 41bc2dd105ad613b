//! What a decision about an action depends on.

use std::sync::Arc;

use super::Guard;
use crate::services::Services;
use crate::turn_cx::TurnCx;

/// The turn that an action belongs to, and what its thread has been allowed.
#[derive(Clone)]
pub(crate) struct ActionCx {
    pub turn: Arc<TurnCx>,
    pub services: Arc<Services>,
    pub guard: Arc<Guard>,
}
