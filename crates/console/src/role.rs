//! What a session may do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The rights of a link and of the session that it became. Each has those of the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads threads and receives their events.
    View,
    /// Answers approvals and other server requests.
    Approve,
    /// Everything that a client can do.
    Drive,
}

/// Methods that change nothing.
const READING: &[&str] = &[
    "account/rateLimits/read",
    "account/read",
    "account/usage/read",
    "approval/list",
    "collaborationMode/list",
    "initialize",
    "mcpServerStatus/list",
    "model/list",
    "server/diagnostics",
    "skills/list",
    "thread/backgroundTerminals/list",
    "thread/goal/get",
    "thread/items/list",
    "thread/list",
    "thread/loaded/list",
    "thread/queue/list",
    "thread/read",
    "thread/resume",
    "thread/search",
    "thread/turns/list",
    "thread/unsubscribe",
    "threadSection/list",
];

/// Decides an approval, as an answer to its server request does.
const DECIDE: &str = "approval/decide";

/// Params of `thread/resume` that change nothing about the thread.
const RESUME: &[&str] = &["afterEvent", "excludeTurns", "initialTurnsPage", "threadId"];

impl Role {
    /// Whether a request is accepted; the error is the message for the client.
    pub fn check_request(self, method: &str, params: Option<&str>) -> Result<(), String> {
        if self == Self::Drive || (method == DECIDE && self.may_answer()) {
            return Ok(());
        }
        if !READING.contains(&method) {
            return Err(format!("the role `{self}` may not call `{method}`"));
        }
        if method != "thread/resume" {
            return Ok(());
        }
        // The decoder of the request refuses a member that occurs twice, so none is hidden by a later one.
        let params: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(params.unwrap_or("{}")).map_err(|error| format!("invalid params: {error}"))?;
        match params.iter().find(|(key, value)| !RESUME.contains(&key.as_str()) && !value.is_null()) {
            Some((key, _)) => Err(format!("the role `{self}` may not set `{key}` of `thread/resume`")),
            None => Ok(()),
        }
    }

    /// Whether answers to server requests are accepted.
    pub fn may_answer(self) -> bool {
        self >= Self::Approve
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::View => "view",
            Self::Approve => "approve",
            Self::Drive => "drive",
        })
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "view" => Ok(Self::View),
            "approve" => Ok(Self::Approve),
            "drive" => Ok(Self::Drive),
            _ => Err(format!("unknown role `{text}`: expected `view`, `approve` or `drive`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_reads_and_neither_starts_turns_nor_answers_approvals() {
        for method in ["thread/list", "thread/read", "model/list"] {
            assert_eq!(Role::View.check_request(method, None), Ok(()));
        }
        for method in ["turn/start", "turn/steer", "thread/delete", "command/exec", "fs/readFile", "unknown"] {
            let expected = format!("the role `view` may not call `{method}`");
            assert_eq!(Role::View.check_request(method, None), Err(expected));
            assert!(Role::Approve.check_request(method, None).is_err());
            assert_eq!(Role::Drive.check_request(method, None), Ok(()));
        }
        assert_eq!([Role::View, Role::Approve, Role::Drive].map(Role::may_answer), [false, true, true]);
        let may_decide = |role: Role| role.check_request("approval/decide", None).is_ok();
        assert_eq!([Role::View, Role::Approve, Role::Drive].map(may_decide), [false, true, true]);
    }

    #[test]
    fn a_viewer_cannot_change_a_thread_by_resuming_it() {
        let check = |params| Role::View.check_request("thread/resume", Some(params));
        assert_eq!(check(r#"{"threadId":"a","excludeTurns":true,"model":null}"#), Ok(()));
        let refused = Err("the role `view` may not set `sandbox` of `thread/resume`".to_owned());
        assert_eq!(check(r#"{"threadId":"a","sandbox":"danger-full-access"}"#), refused);
        assert!(check("[]").is_err());
    }
}
