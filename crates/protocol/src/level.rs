//! The two releases of the protocol that one server speaks at the same time, and what differs between them in what is
//! sent. Most of the protocol is the same, or was only added to; the rest is decided by the level of a connection:
//! [`ClientRequest::experimental_use`](crate::ClientRequest::experimental_use) is the gate of a level,
//! [`Level::encode`] the form of outgoing messages.

use std::cell::Cell;
use std::fmt;

use serde::Serialize;

use crate::{RequestId, ServerNotification, ThreadItem, encode_response};

/// A release of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    V0_118,
    V0_166,
}

thread_local! {
    /// The level of the message that is being encoded on this thread; `None` for anything that is not sent.
    static ENCODING: Cell<Option<Level>> = const { Cell::new(None) };
}

impl Level {
    pub const ALL: [Self; 2] = [Self::V0_118, Self::V0_166];
    /// The newest one.
    pub const LATEST: Self = Self::V0_166;

    /// Returns the version of the release.
    pub fn version(self) -> &'static str {
        match self {
            Self::V0_118 => "0.118.0",
            Self::V0_166 => "0.166.0",
        }
    }

    /// Returns the level of a version: three numbers, and perhaps something behind a hyphen. Releases after 0.118 count
    /// as 0.166; `None` if it is no version.
    pub fn of_version(version: &str) -> Option<Self> {
        let (numbers, _) = version.split_once('-').unwrap_or((version, ""));
        let numbers: Vec<u32> = numbers.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        match *numbers.as_slice() {
            [major, minor, _] if (major, minor) <= (0, 118) => Some(Self::V0_118),
            [_, _, _] => Some(Self::V0_166),
            _ => None,
        }
    }

    /// Encodes a message for connections of this level. Values that another level spells differently, or lacks, are
    /// mapped: their `Serialize` asks [`Self::encoding`].
    pub fn encode<T>(self, encode: impl FnOnce() -> T) -> T {
        /// Restores the level also when `encode` panics.
        struct Restore(Option<Level>);

        impl Drop for Restore {
            fn drop(&mut self) {
                ENCODING.set(self.0);
            }
        }

        let _restore = Restore(ENCODING.replace(Some(self)));
        encode()
    }

    /// The level of the message that is being encoded; `None` for what is not sent to a client, such as records, which
    /// is encoded as it is.
    pub fn encoding() -> Option<Self> {
        ENCODING.get()
    }

    /// Encodes an answer.
    pub fn response(self, id: &RequestId, result: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
        self.encode(|| encode_response(id, result))
    }

    /// Encodes a notification. Since 0.166 it carries the time when it was emitted, in Unix milliseconds.
    pub fn notification(
        self,
        notification: &ServerNotification,
        emitted_at_ms: i64,
    ) -> Result<Vec<u8>, serde_json::Error> {
        let emitted_at_ms = (self >= Self::V0_166).then_some(emitted_at_ms);
        self.encode(|| notification.encode_with(emitted_at_ms))
    }

    /// Whether connections of this level get a notification.
    pub fn has(self, notification: &ServerNotification) -> bool {
        let item = match notification {
            ServerNotification::ItemStarted(started) => Some(&started.item),
            ServerNotification::ItemCompleted(completed) => Some(&completed.item),
            _ => None,
        };
        self >= notification.first_level() && item.is_none_or(|item| self.has_item(item))
    }

    /// Whether this level has items of this type.
    pub fn has_item(self, item: &ThreadItem) -> bool {
        match item {
            ThreadItem::FunctionCallOutput { .. } | ThreadItem::SubAgentActivity { .. } => self >= Self::V0_166,
            _ => true,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientRequest, Stability, ThreadClosedNotification, UNBUILT};

    #[test]
    fn versions_after_0_118_count_as_the_newer_level() {
        for (version, level) in [
            ("0.118.0", Some(Level::V0_118)),
            ("0.99.3", Some(Level::V0_118)),
            ("0.119.0", Some(Level::V0_166)),
            ("0.166.0-alpha.1", Some(Level::V0_166)),
            ("1.0.0", Some(Level::V0_166)),
            ("0.166", None),
            ("latest", None),
            ("", None),
        ] {
            assert_eq!(Level::of_version(version), level, "{version}");
        }
    }

    #[test]
    fn only_notifications_of_the_newer_level_carry_the_time() {
        let closed = ServerNotification::ThreadClosed(ThreadClosedNotification { thread_id: "t".into() });
        let text = |level: Level| String::from_utf8(level.notification(&closed, 5).unwrap()).unwrap();
        assert_eq!(text(Level::V0_118), r#"{"method":"thread/closed","params":{"threadId":"t"}}"#);
        assert_eq!(text(Level::V0_166), r#"{"method":"thread/closed","params":{"threadId":"t"},"emittedAtMs":5}"#);
        assert_eq!(Level::encoding(), None);
    }

    #[test]
    fn items_and_names_of_the_newer_release_are_not_sent_to_an_older_connection() {
        let output = ThreadItem::FunctionCallOutput {
            id: "o".into(),
            name: "tool".into(),
            namespace: None,
            output: crate::FunctionCallOutputBody::Text("x".into()),
        };
        let plan = ThreadItem::Plan { id: "p".into(), text: "x".into() };
        let started = ServerNotification::ItemStarted(crate::ItemStartedNotification {
            item: output.clone(),
            thread_id: "t".into(),
            turn_id: "u".into(),
            started_at_ms: 0,
        });
        assert_eq!(Level::ALL.map(|level| level.has(&started)), [false, true]);
        let turn = crate::Turn { id: "u".into(), items: vec![output, plan], ..crate::Turn::default() };
        let count =
            |level: Level| level.encode(|| serde_json::to_value(&turn).unwrap()["items"].as_array().unwrap().len());
        assert_eq!(Level::ALL.map(count), [1, 2]);
        let shown = |level: Level| {
            level.encode(|| {
                serde_json::json!([
                    crate::ApprovalsReviewer::GuardianSubagent,
                    crate::AskForApproval::OnFailure,
                    crate::NetworkUnixSocketPermission::None,
                ])
            })
        };
        assert_eq!(shown(Level::V0_118), serde_json::json!(["guardian_subagent", "on-failure", "none"]));
        assert_eq!(shown(Level::V0_166), serde_json::json!(["auto_review", "on-request", "deny"]));
    }

    #[test]
    fn the_table_and_the_unbuilt_methods_are_all_methods_of_both_releases_once() {
        let mut known: Vec<&str> = UNBUILT.iter().map(|(method, _)| *method).collect();
        known.extend(ClientRequest::METHODS);
        let count = known.len();
        known.sort_unstable();
        known.dedup();
        assert_eq!(known.len(), count, "a method is both built and unbuilt");
        for recorded in [include_str!("../inventory/0.118.0.txt"), include_str!("../inventory/0.166.0.txt")] {
            let of_release = recorded.lines().filter_map(|line| {
                let method = line.strip_prefix("ClientRequest(method=")?.split_once(')')?.0;
                line.contains(").method: ").then_some((method, line.ends_with("[experimental]")))
            });
            for (method, experimental) in of_release {
                assert!(known.contains(&method), "{method} is not known");
                if let Some((_, stability)) = UNBUILT.iter().find(|(unbuilt, _)| *unbuilt == method) {
                    assert_eq!(*stability == Stability::Experimental, experimental, "{method}");
                }
            }
        }
    }
}
