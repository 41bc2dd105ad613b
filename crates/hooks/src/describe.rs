//! What is configured, for clients to list: also hooks of a kind that does not run.

use std::path::{Path, PathBuf};

use loomd_protocol::{HookEventName, HookHandlerType};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use crate::event::name;
use crate::load::{CommandHook, EVENTS, Hook, HookProblem, HooksFile, MatcherGroup, TIMEOUT_SECONDS, matcher, read};

/// A hook as it is configured.
#[derive(Clone, Debug, PartialEq)]
pub struct HookDescription {
    /// The file that defines it, its event, and the numbers of its group and of itself in that.
    pub source: PathBuf,
    pub event: HookEventName,
    pub group: usize,
    pub index: usize,
    pub handler_type: HookHandlerType,
    pub command: Option<String>,
    pub detached: bool,
    pub matcher: Option<String>,
    pub timeout_seconds: u64,
    pub status_message: Option<String>,
    /// Its definition, for a hash.
    pub definition: String,
}

impl HookDescription {
    /// `<file>:<event>:<group>:<index>`
    pub fn key(&self) -> String {
        format!("{}:{}:{}:{}", self.source.display(), name(self.event), self.group, self.index)
    }
}

/// The hooks of a configuration folder's `hooks.json`.
pub fn describe_folder(folder: &Path) -> (Vec<HookDescription>, Vec<HookProblem>) {
    let path = folder.join("hooks.json");
    let problem = |message: String| (Vec::new(), vec![HookProblem { path: path.clone(), message }]);
    match read(&path) {
        Ok(None) => (Vec::new(), Vec::new()),
        Ok(Some(text)) => match serde_json::from_str::<HooksFile>(&text) {
            Ok(file) => describe(&path, &file.hooks),
            Err(error) => problem(error.to_string()),
        },
        Err(message) => problem(message),
    }
}

/// The hooks of a table by event, which `path` defines.
pub fn describe(path: &Path, hooks: &Map<String, Value>) -> (Vec<HookDescription>, Vec<HookProblem>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for event in EVENTS {
        let Some(groups) = hooks.get(name(event)) else { continue };
        let mut problem = |message: String| {
            problems.push(HookProblem { path: path.to_owned(), message: format!("{}: {message}", name(event)) });
        };
        let groups: Vec<Value> = match Vec::deserialize(groups) {
            Ok(groups) => groups,
            Err(error) => {
                problem(error.to_string());
                continue;
            }
        };
        for (group, definition) in groups.into_iter().enumerate() {
            let MatcherGroup { matcher: pattern, hooks } = match serde_json::from_value(definition) {
                Ok(group) => group,
                Err(error) => {
                    problem(error.to_string());
                    continue;
                }
            };
            if let Err(message) = matcher(pattern.as_deref()) {
                problem(message);
                continue;
            }
            for (index, hook) in hooks.into_iter().enumerate() {
                let definition = hook.to_string();
                let (handler_type, script) = match serde_json::from_value(hook) {
                    Ok(Hook::Command(script)) => (HookHandlerType::Command, Some(script)),
                    Ok(Hook::Prompt {}) => (HookHandlerType::Prompt, None),
                    Ok(Hook::Agent {}) => (HookHandlerType::Agent, None),
                    Err(error) => {
                        problem(error.to_string());
                        continue;
                    }
                };
                let (mut command, mut detached, mut timeout, mut status_message) = (None, false, None, None);
                if let Some(CommandHook {
                    command: text,
                    timeout: seconds,
                    detached: is_detached,
                    status_message: status,
                }) = script
                {
                    (command, detached, timeout, status_message) = (Some(text), is_detached, seconds, status);
                }
                found.push(HookDescription {
                    source: path.to_owned(),
                    event,
                    group,
                    index,
                    handler_type,
                    command,
                    detached,
                    matcher: pattern.clone(),
                    timeout_seconds: timeout.unwrap_or(TIMEOUT_SECONDS),
                    status_message,
                    definition,
                });
            }
        }
    }
    (found, problems)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_hook_is_described_and_what_cannot_be_understood_is_reported() {
        let hooks = json!({
            "PreToolUse": [{ "matcher": "Bash", "hooks": [
                { "type": "command", "command": "echo", "timeout": 7, "statusMessage": "s" },
                { "type": "prompt" }, { "type": "other" },
            ] }],
            "Stop": [{ "hooks": [{ "type": "command", "command": "true" }] }, 5],
            "PostToolUse": [{ "matcher": "(", "hooks": [] }],
        });
        let (found, problems) = describe(Path::new("/c.toml"), hooks.as_object().unwrap());
        let shown: Vec<_> =
            found.iter().map(|hook| (hook.key(), hook.command.as_deref(), hook.timeout_seconds)).collect();
        assert_eq!(
            shown,
            [
                ("/c.toml:PreToolUse:0:0".into(), Some("echo"), 7),
                ("/c.toml:PreToolUse:0:1".into(), None, 600),
                ("/c.toml:Stop:0:0".into(), Some("true"), 600),
            ]
        );
        assert_eq!(problems.len(), 3, "{problems:?}");
    }
}
