//! Hook events, and the JSON that a hook reads on its stdin.

use loomd_protocol::HookEventName;
use serde::Serialize;

/// The tool name, in hooks, of every tool that runs commands.
pub const BASH: &str = "Bash";

/// The thread and turn of an event.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HookContext<'a> {
    /// The thread's id.
    pub session_id: &'a str,
    pub turn_id: &'a str,
    /// The rollout; `None` when the thread has none.
    pub transcript_path: Option<&'a str>,
    pub cwd: &'a str,
    pub model: &'a str,
    pub permission_mode: PermissionMode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    Default,
    /// No approval is ever requested.
    BypassPermissions,
}

/// An event that hooks can run on.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "hook_event_name")]
pub enum HookEvent<'a> {
    SessionStart { source: SessionSource },
    UserPromptSubmit { prompt: &'a str },
    PreToolUse { tool_name: &'a str, tool_input: ToolInput<'a>, tool_use_id: &'a str },
    PostToolUse { tool_name: &'a str, tool_input: ToolInput<'a>, tool_use_id: &'a str, tool_response: &'a str },
    Stop { stop_hook_active: bool, last_assistant_message: Option<&'a str> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionSource {
    Startup,
    Resume,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct ToolInput<'a> {
    pub command: &'a str,
}

impl<'a> HookEvent<'a> {
    pub fn before_command(command: &'a str, call_id: &'a str) -> Self {
        Self::PreToolUse { tool_name: BASH, tool_input: ToolInput { command }, tool_use_id: call_id }
    }

    pub fn after_command(command: &'a str, call_id: &'a str, output: &'a str) -> Self {
        Self::PostToolUse {
            tool_name: BASH,
            tool_input: ToolInput { command },
            tool_use_id: call_id,
            tool_response: output,
        }
    }

    pub fn event_name(&self) -> HookEventName {
        match self {
            Self::SessionStart { .. } => HookEventName::SessionStart,
            Self::UserPromptSubmit { .. } => HookEventName::UserPromptSubmit,
            Self::PreToolUse { .. } => HookEventName::PreToolUse,
            Self::PostToolUse { .. } => HookEventName::PostToolUse,
            Self::Stop { .. } => HookEventName::Stop,
        }
    }

    /// The text that matchers are applied to; `None` for events without matchers.
    pub(crate) fn subject(&self) -> Option<&str> {
        match self {
            Self::SessionStart { source: SessionSource::Startup } => Some("startup"),
            Self::SessionStart { source: SessionSource::Resume } => Some("resume"),
            Self::PreToolUse { tool_name, .. } | Self::PostToolUse { tool_name, .. } => Some(tool_name),
            Self::UserPromptSubmit { .. } | Self::Stop { .. } => None,
        }
    }

    /// The JSON on the stdin of a hook.
    pub(crate) fn stdin(&self, context: &HookContext<'_>) -> String {
        #[derive(Serialize)]
        struct HookInput<'a> {
            #[serde(flatten)]
            context: HookContext<'a>,
            #[serde(flatten)]
            event: HookEvent<'a>,
        }
        let told = serde_json::to_value(HookInput { context: *context, event: *self });
        let mut told = told.unwrap_or_default();
        // A session starts before its first turn, so the event has no turn id.
        if let (Self::SessionStart { .. }, Some(members)) = (self, told.as_object_mut()) {
            members.remove("turn_id");
        }
        told.to_string()
    }
}

/// The name of an event in hooks files and outputs.
pub(crate) fn name(event: HookEventName) -> &'static str {
    match event {
        HookEventName::SessionStart => "SessionStart",
        HookEventName::UserPromptSubmit => "UserPromptSubmit",
        HookEventName::PreToolUse => "PreToolUse",
        HookEventName::PostToolUse => "PostToolUse",
        HookEventName::Stop => "Stop",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SCENE: HookContext<'static> = HookContext {
        session_id: "S",
        turn_id: "T",
        transcript_path: None,
        cwd: "/w",
        model: "m",
        permission_mode: PermissionMode::BypassPermissions,
    };

    #[test]
    fn each_event_is_serialised_with_its_own_fields() {
        let check = |event: HookEvent<'_>, own: Value| {
            let mut expected = json!({
                "session_id": "S", "turn_id": "T", "transcript_path": null, "cwd": "/w", "model": "m",
                "permission_mode": "bypassPermissions", "hook_event_name": name(event.event_name()),
            });
            for (key, value) in own.as_object().unwrap() {
                expected[key] = value.clone();
            }
            if event.event_name() == HookEventName::SessionStart {
                expected.as_object_mut().unwrap().remove("turn_id");
            }
            let told: Value = serde_json::from_str(&event.stdin(&SCENE)).unwrap();
            assert_eq!(told, expected);
        };
        check(HookEvent::SessionStart { source: SessionSource::Resume }, json!({ "source": "resume" }));
        check(HookEvent::UserPromptSubmit { prompt: "hi" }, json!({ "prompt": "hi" }));
        let tool = json!({ "tool_name": "Bash", "tool_input": { "command": "ls" }, "tool_use_id": "c" });
        check(HookEvent::before_command("ls", "c"), tool.clone());
        let mut done = tool;
        done["tool_response"] = "a\n".into();
        check(HookEvent::after_command("ls", "c", "a\n"), done);
        let stop = HookEvent::Stop { stop_hook_active: true, last_assistant_message: None };
        check(stop, json!({ "stop_hook_active": true, "last_assistant_message": null }));
    }
}
