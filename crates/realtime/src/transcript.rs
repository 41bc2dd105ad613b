//! What was said in a session since the last handoff.

use std::collections::VecDeque;

use serde::Serialize;

/// The most text that is kept. The oldest entries are dropped beyond it.
const MAX_BYTES: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    User,
    Assistant,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Entry {
    pub role: Role,
    pub text: String,
}

/// Pieces of one speaker that follow each other are one entry.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    entries: VecDeque<Entry>,
    bytes: usize,
}

impl Transcript {
    pub fn push(&mut self, role: Role, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.entries.back_mut() {
            Some(last) if last.role == role => last.text.push_str(text),
            _ => self.entries.push_back(Entry { role, text: text.into() }),
        }
        self.bytes += text.len();
        while self.bytes > MAX_BYTES && self.entries.len() > 1 {
            self.bytes -= self.entries.pop_front().map_or(0, |entry| entry.text.len());
        }
        if self.bytes > MAX_BYTES
            && let Some(only) = self.entries.front_mut()
        {
            let cut = only.text.ceil_char_boundary(only.text.len() - MAX_BYTES);
            only.text.drain(..cut);
            self.bytes = only.text.len();
        }
    }

    /// Returns what was said, and forgets it.
    pub fn take(&mut self) -> Vec<Entry> {
        self.bytes = 0;
        std::mem::take(&mut self.entries).into()
    }
}

/// Returns a line per entry: `role: text`.
pub(crate) fn lines(entries: &[Entry]) -> String {
    let lines: Vec<String> = entries.iter().map(|entry| format!("{}: {}", entry.role.name(), entry.text)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_one_speaker_are_joined() {
        let mut transcript = Transcript::default();
        for (role, text) in
            [(Role::User, "hel"), (Role::User, "lo "), (Role::Assistant, "yes"), (Role::User, ""), (Role::User, "go")]
        {
            transcript.push(role, text);
        }
        assert_eq!(lines(&transcript.take()), "user: hello \nassistant: yes\nuser: go");
        assert_eq!(transcript.take(), []);
    }

    #[test]
    fn a_long_conversation_keeps_its_end() {
        let mut transcript = Transcript::default();
        for turn in 0..1000 {
            transcript.push(Role::User, &format!("{turn} {}", "ü".repeat(100)));
            transcript.push(Role::Assistant, "mm");
        }
        let entries = transcript.take();
        let bytes: usize = entries.iter().map(|entry| entry.text.len()).sum();
        assert!(bytes <= MAX_BYTES && bytes > MAX_BYTES / 2, "{bytes}");
        assert_eq!(entries.last().map(|entry| entry.role), Some(Role::Assistant));

        for _ in 0..1000 {
            transcript.push(Role::User, &"ü".repeat(1000));
        }
        let entries = transcript.take();
        assert!(entries.len() == 1 && entries[0].text.len() <= MAX_BYTES);
    }
}
