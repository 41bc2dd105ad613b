//! Output deltas of a running command. Its output is not read while subscribers lag, so that a program that prints
//! faster than they read has to wait.

use std::collections::VecDeque;
use std::pin::pin;

use loomd_protocol::{CommandExecutionOutputDeltaNotification, ServerNotification};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::turn_cx::TurnCx;

/// The output of one command that has not been published yet.
pub(crate) struct Deltas<'a> {
    turn: &'a TurnCx,
    item_id: &'a str,
    waiting: Mutex<VecDeque<String>>,
    arrived: Notify,
}

impl<'a> Deltas<'a> {
    pub fn new(turn: &'a TurnCx, item_id: &'a str) -> Self {
        Self { turn, item_id, waiting: Mutex::default(), arrived: Notify::new() }
    }

    pub fn push(&self, text: String) {
        if !text.is_empty() {
            self.waiting.lock().push_back(text);
            self.arrived.notify_one();
        }
    }

    /// Runs `work` and publishes its output. All output has been published when this returns.
    pub async fn alongside<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                () = self.arrived.notified() => self.show().await,
                done = &mut work => {
                    self.show().await;
                    return done;
                }
            }
        }
    }

    async fn show(&self) {
        loop {
            let next = self.waiting.lock().pop_front();
            let Some(delta) = next else { return };
            self.turn
                .publish(ServerNotification::CommandExecutionOutputDelta(CommandExecutionOutputDeltaNotification {
                    thread_id: self.turn.thread_id.clone(),
                    turn_id: self.turn.turn_id.clone(),
                    item_id: self.item_id.into(),
                    delta,
                }))
                .await;
        }
    }
}
