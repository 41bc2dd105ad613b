//! The steps of a turn that only a replay takes: it compares the input of model calls with the recording, and takes
//! from it what came from clients meanwhile.

use std::sync::atomic::Ordering;

use super::task::{Failure, TurnTask};
use crate::replay::{BetweenCalls, CallPurpose, Stop};

impl TurnTask {
    /// Compares the input of the next model call with the recording.
    pub(super) fn replay_model_call(&self, asked: CallPurpose) {
        if let Some(replayed) = &self.services.replayed {
            replayed.check_input(asked, &self.conversation.input(self.sees_images()), self.sees_images());
        }
    }

    /// Plays what came between two model calls: input, commands of the user, an interrupt or failure.
    pub(super) async fn replay_gap(&self) -> Result<(), Failure> {
        let Some(replayed) = &self.services.replayed else { return Ok(()) };
        let BetweenCalls { inputs, strays, stop } = replayed.gap();
        for event in strays {
            replayed.show(&self.cx, event).await;
        }
        for inputs in inputs {
            _ = self.inbox.put(inputs);
        }
        match stop {
            None => Ok(()),
            Some(Stop::Interrupt { replaced }) => {
                self.replaced.store(replaced, Ordering::Relaxed);
                self.cx.cancel.cancel();
                Err(Failure::Interrupted)
            }
            Some(Stop::Fail(error)) => Err(Failure::Other(error)),
        }
    }
}
