//! What a turn does only when it is a replay: it shows what the model is told, and takes from the recording
//! what came from outside while it ran.

use std::sync::atomic::Ordering;

use super::task::{Failure, TurnTask};
use crate::replay::{Asked, Gap, Stop};

impl TurnTask {
    /// The model is about to be asked.
    pub(super) fn replay_told(&self, asked: Asked) {
        if let Some(replayed) = &self.services.replayed {
            replayed.told(asked, &self.conversation.input(self.sees_images()), self.sees_images());
        }
    }

    /// What came before the model was asked again: inputs, commands of the user, the end.
    pub(super) async fn replay_gap(&self) -> Result<(), Failure> {
        let Some(replayed) = &self.services.replayed else { return Ok(()) };
        let Gap { inputs, strays, stop } = replayed.gap();
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
