//! Input for a turn that is running. It is closed in the same moment in which the turn finds it empty for
//! the last time, so that nothing is put in that nobody takes out.

use std::collections::VecDeque;
use std::sync::Arc;

use loomd_protocol::{ResponseItem, UserInput};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// What a turn has not heard yet is bounded: nobody says so much to somebody who does not answer.
const MAX_INPUTS: usize = 1024;

/// Something that the model should hear next.
#[derive(Debug)]
pub(crate) enum Input {
    /// What the user says; shown as an item.
    User(Vec<UserInput>),
    /// Something that happened; not shown.
    Injected(Box<ResponseItem>),
}

#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    released: Notify,
}

/// A promise: something is still to be put in.
pub(crate) struct Hold(Arc<Inbox>);

impl Hold {
    /// Puts in what was promised. The turn waits for it, so that it is taken even from a closed inbox.
    pub fn put(self, inputs: Input) {
        self.0.lock().inputs.push_back(inputs);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.lock().holds -= 1;
        self.0.released.notify_waiters();
    }
}

#[derive(Default)]
struct State {
    inputs: VecDeque<Input>,
    closed: bool,
    holds: usize,
}

impl Inbox {
    /// Gives the inputs back when the turn takes no more.
    pub fn put(&self, inputs: Input) -> Result<(), Input> {
        let mut state = self.lock();
        if state.closed || state.inputs.len() >= MAX_INPUTS {
            return Err(inputs);
        }
        state.inputs.push_back(inputs);
        Ok(())
    }

    /// `None` when the turn takes no more.
    pub fn hold(self: &Arc<Self>) -> Option<Hold> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        state.holds += 1;
        drop(state);
        Some(Hold(Arc::clone(self)))
    }

    /// Resolves when nothing is to be put in that somebody promised.
    pub async fn settled(&self) {
        loop {
            let released = self.released.notified();
            if self.lock().holds == 0 {
                return;
            }
            released.await;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.lock().inputs.is_empty()
    }

    pub fn take(&self) -> Vec<Input> {
        self.lock().inputs.drain(..).collect()
    }

    /// Closes it if there is nothing in it; false when there is.
    pub fn close_if_empty(&self) -> bool {
        let mut state = self.lock();
        state.closed |= state.inputs.is_empty() && state.holds == 0;
        state.closed
    }

    /// Closes it and gives what is left. What was promised may still come.
    pub fn close(&self) -> Vec<Input> {
        let mut state = self.lock();
        state.closed = true;
        state.inputs.drain(..).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
