//! The context of a decision about an action.

use std::sync::Arc;

use super::Guard;
use crate::services::Services;
use crate::turn_cx::TurnCx;

/// The turn of an action, and the guard of its thread.
#[derive(Clone)]
pub(crate) struct ActionCx {
    pub turn: Arc<TurnCx>,
    pub services: Arc<Services>,
    pub guard: Arc<Guard>,
}
