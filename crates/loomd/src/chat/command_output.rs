//! [`CommandOutput`]: the end of the output of running commands, and the whole output of the last one.

use std::collections::BTreeMap;

use loomd_client::protocol::{ServerNotification, ThreadItem};

use crate::show::lines;

/// How much of the output of a running command is kept.
const KEPT: usize = 4 * 1024;

#[derive(Default)]
pub struct CommandOutput {
    running: BTreeMap<String, String>,
    last: Option<LastOutput>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastOutput {
    pub command: String,
    pub output: String,
}

impl CommandOutput {
    pub fn note(&mut self, notification: &ServerNotification) {
        match notification {
            ServerNotification::CommandExecutionOutputDelta(delta) => {
                let output = self.running.entry(delta.item_id.clone()).or_default();
                output.push_str(&delta.delta);
                let mut cut = output.len().saturating_sub(KEPT);
                while !output.is_char_boundary(cut) {
                    cut += 1;
                }
                output.drain(..cut);
            }
            ServerNotification::ItemCompleted(completed) => {
                if let ThreadItem::CommandExecution { id, command, aggregated_output, .. } = &completed.item {
                    self.running.remove(id);
                    let output = aggregated_output.clone().unwrap_or_default();
                    self.last = Some(LastOutput { command: command.clone(), output });
                }
            }
            ServerNotification::TurnCompleted(_) => self.running.clear(),
            _ => {}
        }
    }

    /// The last lines that a command has written, if only one runs.
    pub fn tail(&self, count: usize) -> Vec<String> {
        let mut running = self.running.values();
        let (Some(output), None) = (running.next(), running.next()) else { return Vec::new() };
        let mut lines = lines(output);
        lines.drain(..lines.len().saturating_sub(count));
        lines
    }

    /// The last command that has ended.
    pub fn last(&self) -> Option<&LastOutput> {
        self.last.as_ref()
    }
}
