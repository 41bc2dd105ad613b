//! Input for a turn that is running. It is closed in the same moment in which the turn finds it empty for
//! the last time, so that nothing is put in that nobody takes out.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use loomd_protocol::{ResponseItem, UserInput};

/// Something that the model should hear next.
#[derive(Debug)]
pub(crate) enum Mail {
    /// What the user says; shown as an item.
    Said(Vec<UserInput>),
    /// Something that happened; not shown.
    Happened(ResponseItem),
}

#[derive(Default)]
pub(crate) struct Inbox(Mutex<State>);

#[derive(Default)]
struct State {
    mail: VecDeque<Mail>,
    closed: bool,
}

impl Inbox {
    /// Gives the mail back when the turn takes no more.
    pub fn put(&self, mail: Mail) -> Result<(), Mail> {
        let mut state = self.lock();
        if state.closed {
            return Err(mail);
        }
        state.mail.push_back(mail);
        Ok(())
    }

    pub fn take(&self) -> Vec<Mail> {
        self.lock().mail.drain(..).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().mail.is_empty()
    }

    /// Closes it if there is nothing in it; false when there is.
    pub fn close_if_empty(&self) -> bool {
        let mut state = self.lock();
        state.closed |= state.mail.is_empty();
        state.closed
    }

    /// Closes it and gives what is left.
    pub fn close(&self) -> Vec<Mail> {
        let mut state = self.lock();
        state.closed = true;
        state.mail.drain(..).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
