//! What the turns of a thread know of its realtime session.

use loomd_realtime::{Input, InputQueue};
use parking_lot::Mutex;

/// Shared by the thread's task, which changes it, and the turns.
#[derive(Default)]
pub(crate) struct RealtimeLink(Mutex<State>);

#[derive(Default)]
struct State {
    active: bool,
    delegation: Option<Delegation>,
}

/// A turn that works on a handoff.
struct Delegation {
    turn_id: String,
    inputs: InputQueue,
}

impl RealtimeLink {
    /// Whether a session is open.
    pub fn is_active(&self) -> bool {
        self.0.lock().active
    }

    pub fn set_active(&self) {
        self.0.lock().active = true;
    }

    /// Notes that the session has ended. What the turns say is no longer sent to it.
    pub fn clear(&self) {
        *self.0.lock() = State::default();
    }

    /// Notes that a turn works on the latest handoff.
    pub fn delegate(&self, turn_id: String, inputs: InputQueue) {
        self.0.lock().delegation = Some(Delegation { turn_id, inputs });
    }

    /// Sends a message of a turn to the session if the turn works on its handoff.
    pub fn agent_message(&self, turn_id: &str, text: &str) {
        let state = self.0.lock();
        if let Some(delegation) = state.delegation.as_ref().filter(|delegation| delegation.turn_id == turn_id) {
            delegation.put(Input::AgentMessage(text.into()));
        }
    }

    /// Notes the end of a turn. `error` is why it did not complete.
    pub fn turn_ended(&self, turn_id: &str, error: Option<String>) {
        let mut state = self.0.lock();
        if let Some(delegation) = state.delegation.take_if(|delegation| delegation.turn_id == turn_id) {
            delegation.put(Input::HandoffDone { error });
        }
    }
}

impl Delegation {
    fn put(&self, input: Input) {
        if self.inputs.put(input).is_err() {
            tracing::warn!(turn = %self.turn_id, "a realtime session does not take the messages of its turn");
        }
    }
}
