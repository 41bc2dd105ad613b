//! Listing and ending the commands that a thread runs in the background.

use loomd_protocol::ThreadBackgroundTerminal;

use super::state::Thread;

impl Thread {
    /// The commands that go on after the calls that started them, by their process ids.
    pub(super) fn list_terminals(&self) -> Vec<ThreadBackgroundTerminal> {
        let listed = self.tools.terminals.listed().into_iter();
        listed
            .map(|(id, session)| ThreadBackgroundTerminal {
                item_id: session.item_id,
                process_id: id.to_string(),
                command: session.script,
                cwd: session.cwd,
                os_pid: None,
                cpu_percent: None,
                rss_kb: None,
            })
            .collect()
    }
}
