//! Loads the `hooks.json` of every configuration folder. Invalid hooks are reported, and do not affect the others.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loomd_protocol::HookEventName;
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::event::{HookEvent, name};

/// The largest hooks file that is read.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// The most hooks: all that match an event run at the same time.
const MAX_HANDLERS: usize = 256;
/// The default timeout of a hook.
pub(crate) const TIMEOUT_SECONDS: u64 = 600;
/// The longest timeout of a hook: its turn waits for it.
const MAX_TIMEOUT_SECONDS: u64 = 24 * 60 * 60;

/// In the order in which a file's hooks are numbered.
pub(crate) const EVENTS: [HookEventName; 5] = [
    HookEventName::PreToolUse,
    HookEventName::PostToolUse,
    HookEventName::SessionStart,
    HookEventName::UserPromptSubmit,
    HookEventName::Stop,
];

/// The hooks in force, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    pub(crate) handlers: Vec<Handler>,
}

/// One hook: a script for the user's shell, and when it runs.
#[derive(Clone, Debug)]
pub struct Handler {
    pub(crate) event: HookEventName,
    /// `None`: always.
    matcher: Option<Regex>,
    pub(crate) command: String,
    pub(crate) timeout: Duration,
    pub(crate) status_message: Option<String>,
    /// The file that defines it.
    pub(crate) source: PathBuf,
    pub(crate) order: usize,
}

#[derive(Debug, Default)]
pub struct LoadedHooks {
    pub hooks: Hooks,
    pub problems: Vec<HookProblem>,
}

/// A part of a file that is ignored, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookProblem {
    pub path: PathBuf,
    pub message: String,
}

impl Hooks {
    /// Reads the hooks of configuration folders, lowest precedence first.
    pub fn load<P: AsRef<Path>>(config_folders: &[P]) -> LoadedHooks {
        let mut loaded = LoadedHooks::default();
        for folder in config_folders {
            let path = folder.as_ref().join("hooks.json");
            match read(&path) {
                Ok(Some(text)) => loaded.add(&path, &text),
                Ok(None) => {}
                Err(message) => loaded.problems.push(HookProblem { path, message }),
            }
        }
        loaded
    }

    /// The hooks that run on an event.
    pub(crate) fn matching<'a>(&'a self, event: &'a HookEvent<'_>) -> impl Iterator<Item = &'a Handler> {
        let (event, subject) = (event.event_name(), event.subject());
        self.handlers.iter().filter(move |handler| handler.event == event && handler.matches(subject))
    }
}

impl Handler {
    fn matches(&self, subject: Option<&str>) -> bool {
        match (&self.matcher, subject) {
            (Some(matcher), Some(subject)) => matcher.is_match(subject.as_bytes()),
            _ => true,
        }
    }
}

pub(crate) fn read(path: &Path) -> Result<Option<String>, String> {
    match loomd_regular::read_to_string(path, MAX_FILE_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

#[derive(Deserialize)]
pub(crate) struct HooksFile {
    #[serde(default)]
    pub(crate) hooks: Map<String, Value>,
}

#[derive(Deserialize)]
pub(crate) struct MatcherGroup {
    pub(crate) matcher: Option<String>,
    #[serde(default)]
    pub(crate) hooks: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Hook {
    Command(CommandHook),
    Prompt {},
    Agent {},
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommandHook {
    pub(crate) command: String,
    #[serde(alias = "timeoutSec")]
    pub(crate) timeout: Option<u64>,
    #[serde(default, rename = "async")]
    pub(crate) detached: bool,
    pub(crate) status_message: Option<String>,
}

impl LoadedHooks {
    fn add(&mut self, path: &Path, text: &str) {
        let mut problem = |message| self.problems.push(HookProblem { path: path.to_owned(), message });
        let file: HooksFile = match serde_json::from_str(text) {
            Ok(file) => file,
            Err(error) => return problem(error.to_string()),
        };
        for event in EVENTS {
            let Some(groups) = file.hooks.get(name(event)) else { continue };
            let groups: Vec<Value> = match Vec::deserialize(groups) {
                Ok(groups) => groups,
                Err(error) => {
                    problem(format!("{}: {error}", name(event)));
                    continue;
                }
            };
            for group in groups {
                let handlers = self.hooks.handlers.len();
                match handlers_of(event, group, path, handlers, &mut problem) {
                    Ok(more) => self.hooks.handlers.extend(more),
                    Err(message) => problem(format!("{}: {message}", name(event))),
                }
            }
        }
    }
}

/// The hooks of a group, numbered from `order` on; those that cannot be are reported and skipped.
fn handlers_of(
    event: HookEventName,
    group: Value,
    path: &Path,
    order: usize,
    problem: &mut impl FnMut(String),
) -> Result<Vec<Handler>, String> {
    let group: MatcherGroup = serde_json::from_value(group).map_err(|error| error.to_string())?;
    let matcher = match event {
        // There is nothing to match.
        HookEventName::UserPromptSubmit | HookEventName::Stop => None,
        _ => matcher(group.matcher.as_deref())?,
    };
    let mut handlers = Vec::new();
    for hook in group.hooks {
        match script(hook) {
            Ok(_) if order + handlers.len() == MAX_HANDLERS => {
                return Err(format!("there are more than {MAX_HANDLERS} hooks"));
            }
            Ok(script) => handlers.push(Handler {
                event,
                matcher: matcher.clone(),
                command: script.command,
                timeout: Duration::from_secs(script.timeout.unwrap_or(TIMEOUT_SECONDS).clamp(1, MAX_TIMEOUT_SECONDS)),
                status_message: script.status_message,
                source: path.to_owned(),
                order: order + handlers.len(),
            }),
            Err(message) => problem(format!("{}: {message}", name(event))),
        }
    }
    Ok(handlers)
}

/// Compiles a matcher without Unicode support: the texts that matchers are applied to are ASCII.
pub(crate) fn matcher(text: Option<&str>) -> Result<Option<Regex>, String> {
    match text {
        None | Some("" | "*") => Ok(None),
        Some(text) => match RegexBuilder::new(text).unicode(false).build() {
            Ok(matcher) => Ok(Some(matcher)),
            Err(error) => Err(format!("invalid matcher {text:?}: {error}")),
        },
    }
}

fn script(hook: Value) -> Result<CommandHook, String> {
    match serde_json::from_value(hook).map_err(|error| error.to_string())? {
        Hook::Prompt {} => Err("prompt hooks are not supported".into()),
        Hook::Agent {} => Err("agent hooks are not supported".into()),
        Hook::Command(script) if script.detached => Err("async hooks are not supported".into()),
        Hook::Command(script) if script.command.trim().is_empty() => Err("the command is empty".into()),
        Hook::Command(script) => Ok(script),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::event::SessionSource;

    fn load(files: &[Value]) -> (Vec<String>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let folders: Vec<_> = (0..files.len()).map(|n| folder.path().join(n.to_string())).collect();
        for (file, folder) in files.iter().zip(&folders) {
            fs::create_dir(folder).unwrap();
            let text = file.as_str().map_or_else(|| file.to_string(), str::to_owned);
            fs::write(folder.join("hooks.json"), text).unwrap();
        }
        let loaded = Hooks::load(&folders);
        let shown = |handler: &Handler| {
            let (event, seconds) = (name(handler.event), handler.timeout.as_secs());
            format!("{}:{event}:{}:{seconds}", handler.order, handler.command)
        };
        let handlers = loaded.hooks.handlers.iter().map(shown).collect();
        (handlers, loaded.problems.into_iter().map(|problem| problem.message).collect())
    }

    fn group(command: &str) -> Value {
        json!({ "hooks": [{ "type": "command", "command": command }] })
    }

    #[test]
    fn hooks_are_numbered_by_event_and_file() {
        let first = json!({ "hooks": {
            "Stop": [group("d")], "PreToolUse": [group("a"), group("b")], "SessionStart": [group("c")], "Other": 1,
        }, "more": 1 });
        let second = json!({ "hooks": { "PreToolUse": [group("e")] } });
        let expected =
            ["0:PreToolUse:a:600", "1:PreToolUse:b:600", "2:SessionStart:c:600", "3:Stop:d:600", "4:PreToolUse:e:600"];
        assert_eq!(load(&[first, second]), (expected.map(String::from).to_vec(), vec![]));
    }

    #[test]
    fn an_unsupported_hook_is_skipped_and_reported() {
        let check = |stop: Value, handlers: &[&str], problems: &[&str]| {
            let (found, told) = load(&[json!({ "hooks": { "Stop": stop } })]);
            assert_eq!(found, handlers);
            assert_eq!(told.len(), problems.len(), "{told:?}");
            assert!(told.iter().zip(problems).all(|(told, expected)| told.contains(expected)), "{told:?}");
        };
        let hook = |members: Value| json!([{ "hooks": [members] }, group("x")]);
        check(hook(json!({ "type": "prompt", "prompt": "?" })), &["0:Stop:x:600"], &["prompt hooks"]);
        check(hook(json!({ "type": "agent" })), &["0:Stop:x:600"], &["agent hooks"]);
        check(hook(json!({ "type": "odd" })), &["0:Stop:x:600"], &["unknown variant `odd`"]);
        check(hook(json!({ "type": "command", "command": " " })), &["0:Stop:x:600"], &["command is empty"]);
        check(hook(json!({ "type": "command" })), &["0:Stop:x:600"], &["missing field `command`"]);
        let detached = json!({ "type": "command", "command": "a", "async": true });
        check(hook(detached), &["0:Stop:x:600"], &["async hooks"]);
        let timed = |name: &str, value: Value| hook(json!({ "type": "command", "command": "a", name: value }));
        check(timed("timeout", json!(0)), &["0:Stop:a:1", "1:Stop:x:600"], &[]);
        check(timed("timeoutSec", json!(7)), &["0:Stop:a:7", "1:Stop:x:600"], &[]);
        check(timed("timeout", json!(u64::MAX)), &["0:Stop:a:86400", "1:Stop:x:600"], &[]);
        check(timed("timeout", json!(-1)), &["0:Stop:x:600"], &["invalid value"]);
        check(json!([{ "matcher": "[", "hooks": group("y")["hooks"] }]), &["0:Stop:y:600"], &[]);
        check(json!(3), &[], &["Stop: invalid type"]);
        let many = vec![group("x"); MAX_HANDLERS + 1];
        let (found, told) = load(&[json!({ "hooks": { "Stop": many } })]);
        assert_eq!((found.len(), told), (MAX_HANDLERS, vec!["Stop: there are more than 256 hooks".into()]));
    }

    #[test]
    fn a_hooks_file_with_invalid_json_is_reported_and_has_no_hooks() {
        let (found, told) = load(&[json!("{nope")]);
        assert_eq!((found.len(), told.len()), (0, 1));
        assert_eq!(load(&[json!({})]), (vec![], vec![]));
    }

    #[test]
    fn matchers_apply_to_the_tool_name_or_session_source() {
        let check = |matcher: &str, event: HookEvent<'_>, expected: bool| {
            let mut group = group("x");
            group["matcher"] = matcher.into();
            let mut loaded = LoadedHooks::default();
            let file = json!({ "hooks": { "PreToolUse": [group], "SessionStart": [group], "Stop": [group] } });
            loaded.add(Path::new("f"), &file.to_string());
            assert_eq!(loaded.problems, []);
            assert_eq!(loaded.hooks.matching(&event).count() == 1, expected, "{matcher} {event:?}");
        };
        let command = HookEvent::before_command("ls", "c");
        for matcher in ["", "*", "Bash", "^Bash$", "Ba", "Edit|Bash", r"B\wsh", "(?i)bash"] {
            check(matcher, command, true);
        }
        for matcher in ["bash", "Edit", "^B$"] {
            check(matcher, command, false);
        }
        check("^resume$", HookEvent::SessionStart { source: SessionSource::Resume }, true);
        check("^resume$", HookEvent::SessionStart { source: SessionSource::Startup }, false);
        check("nothing", HookEvent::Stop { stop_hook_active: false, last_assistant_message: None }, true);
        let mut loaded = LoadedHooks::default();
        let broken = json!({ "hooks": { "PreToolUse": [{ "matcher": "[", "hooks": group("x")["hooks"] }] } });
        loaded.add(Path::new("f"), &broken.to_string());
        assert!(loaded.hooks.handlers.is_empty() && loaded.problems[0].message.contains("invalid matcher \"[\""));
    }

    proptest! {
        #[test]
        fn no_hooks_file_panics(text: String, matcher: String) {
            let mut loaded = LoadedHooks::default();
            loaded.add(Path::new("f"), &text);
            let group = json!({ "matcher": matcher, "hooks": [{ "type": "command", "command": text }] });
            loaded.add(Path::new("f"), &json!({ "hooks": { "PreToolUse": [group] } }).to_string());
            let _ = loaded.hooks.matching(&HookEvent::before_command("ls", "c")).count();
        }
    }
}
