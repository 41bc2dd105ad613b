//! Input for a turn that is running. It is closed in the same moment in which the turn finds it empty for
//! the last time, so that nothing is put in that nobody takes out.

use std::collections::VecDeque;
use std::sync::Arc;

use loomd_protocol::{ResponseItem, UserInput};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// What a turn has not heard yet is bounded: nobody says so much to somebody who does not answer.
const MAX_MAIL: usize = 1024;

/// Something that the model should hear next.
#[derive(Debug)]
pub(crate) enum Mail {
    /// What the user says; shown as an item.
    Said(Vec<UserInput>),
    /// Something that happened; not shown.
    Happened(Box<ResponseItem>),
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
    pub fn put(self, mail: Mail) {
        self.0.lock().mail.push_back(mail);
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
    mail: VecDeque<Mail>,
    closed: bool,
    holds: usize,
}

impl Inbox {
    /// Gives the mail back when the turn takes no more.
    pub fn put(&self, mail: Mail) -> Result<(), Mail> {
        let mut state = self.lock();
        if state.closed || state.mail.len() >= MAX_MAIL {
            return Err(mail);
        }
        state.mail.push_back(mail);
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
        self.lock().mail.is_empty()
    }

    pub fn take(&self) -> Vec<Mail> {
        self.lock().mail.drain(..).collect()
    }

    /// Closes it if there is nothing in it; false when there is.
    pub fn close_if_empty(&self) -> bool {
        let mut state = self.lock();
        state.closed |= state.mail.is_empty() && state.holds == 0;
        state.closed
    }

    /// Closes it and gives what is left. What was promised may still come.
    pub fn close(&self) -> Vec<Mail> {
        let mut state = self.lock();
        state.closed = true;
        state.mail.drain(..).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
