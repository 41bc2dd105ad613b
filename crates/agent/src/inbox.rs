//! The queue of input for a running turn. The turn closes it under the same lock under which it finds it empty, so that
//! no input is accepted and then lost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loomd_protocol::{ResponseItem, UserInput};
use loomd_store::rollout::CompletedItem;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// The most inputs that wait for a turn; more are refused.
const MAX_INPUTS: usize = 1024;

/// Input for the next model call.
#[derive(Debug)]
pub(crate) enum Input {
    /// User input, which is published as an item.
    User(UserMessageInput),
    /// A message of another agent, and what is shown of it.
    Agent { item: Box<ResponseItem>, activity: Box<CompletedItem> },
    /// An item that is added to the conversation only, such as the end of a child agent.
    Injected(Box<ResponseItem>),
}

/// One message of the user.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UserMessageInput {
    /// The id of its item; a new one when `None`.
    pub id: Option<String>,
    pub content: Vec<UserInput>,
    /// The client's own id of the message.
    pub client_id: Option<String>,
}

impl From<Vec<UserInput>> for UserMessageInput {
    fn from(content: Vec<UserInput>) -> Self {
        Self { content, ..Self::default() }
    }
}

#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<Queue>,
    released: Notify,
    /// The input that waits in all inboxes which are counted together.
    waiting: Arc<AtomicUsize>,
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.take();
    }
}

/// A reservation: one more input will come. The turn does not end before it is put or dropped.
pub(crate) struct InboxReservation(Arc<Inbox>);

impl InboxReservation {
    /// Puts the reserved input, also into a closed inbox.
    pub fn put(self, inputs: Input) {
        self.0.lock().inputs.push_back(inputs);
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for InboxReservation {
    fn drop(&mut self) {
        self.0.lock().holds -= 1;
        self.0.released.notify_waiters();
    }
}

#[derive(Default)]
struct Queue {
    inputs: VecDeque<Input>,
    closed: bool,
    holds: usize,
}

impl Inbox {
    /// An inbox whose input is counted.
    pub fn counted(waiting: &Arc<AtomicUsize>) -> Self {
        Self { state: Mutex::default(), released: Notify::new(), waiting: Arc::clone(waiting) }
    }

    /// Queues input. Returns it as the error when the inbox is closed or full.
    pub fn put(&self, inputs: Input) -> Result<(), Input> {
        let mut state = self.lock();
        if state.closed || state.inputs.len() >= MAX_INPUTS {
            return Err(inputs);
        }
        state.inputs.push_back(inputs);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Reserves an input; `None` when the inbox is closed or full.
    pub fn hold(self: &Arc<Self>) -> Option<InboxReservation> {
        let mut state = self.lock();
        if state.closed || state.inputs.len() + state.holds >= MAX_INPUTS {
            return None;
        }
        state.holds += 1;
        drop(state);
        Some(InboxReservation(Arc::clone(self)))
    }

    /// Resolves when no reservation is open.
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
        self.drain(&mut self.lock())
    }

    fn drain(&self, queue: &mut Queue) -> Vec<Input> {
        let inputs: Vec<_> = queue.inputs.drain(..).collect();
        self.waiting.fetch_sub(inputs.len(), Ordering::Relaxed);
        inputs
    }

    /// Closes the inbox if it is empty and nothing is reserved. Returns whether it is closed.
    pub fn close_if_empty(&self) -> bool {
        let mut state = self.lock();
        state.closed |= state.inputs.is_empty() && state.holds == 0;
        state.closed
    }

    /// Closes the inbox and returns what is queued. Reserved input may still come.
    pub fn close(&self) -> Vec<Input> {
        let mut state = self.lock();
        state.closed = true;
        self.drain(&mut state)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.state.lock()
    }
}
