//! Parses the output of a hook: its exit code, and nothing, plain text or a JSON object on its stdout. A hook that
//! fails, or whose output is invalid, blocks nothing.

use loomd_exec::{Exit, Outcome};
use loomd_protocol::{HookEventName, HookOutputEntry, HookOutputEntryKind, HookRunStatus};
use serde::Deserialize;
use serde_json::Value;

use crate::event::name;

/// What a hook requests of the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// The turn stops.
    pub stop: bool,
    /// Context for the model.
    pub context: Option<String>,
    /// The reason why the event is blocked, the text in place of a tool's output, or the prompt that continues the
    /// turn.
    pub feedback: Option<String>,
}

/// The parsed output of a hook.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ParsedOutput {
    pub status: HookRunStatus,
    pub entries: Vec<HookOutputEntry>,
    pub effect: Effect,
}

/// How a hook ended and what it printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HookOutput<'a> {
    pub outcome: Outcome,
    pub stdout: &'a str,
    pub stderr: &'a str,
    pub timeout_seconds: u64,
}

pub(crate) fn parse_output(event: HookEventName, output: HookOutput<'_>) -> ParsedOutput {
    let mut parsed = ParsedOutput::default();
    let result = match output.outcome {
        Outcome::Ended(Exit::Code(0)) => parsed.parse(event, output.stdout.trim()),
        Outcome::Ended(Exit::Code(2)) if event != HookEventName::SessionStart => {
            parsed.parse_objection(event, output.stderr.trim())
        }
        Outcome::Ended(Exit::Code(code)) => Err(format!("hook exited with code {code}")),
        Outcome::Ended(Exit::Signal(_)) => Err("hook exited without a status code".into()),
        Outcome::TimedOut => Err(format!("hook timed out after {}s", output.timeout_seconds)),
        Outcome::Cancelled => Err("hook was interrupted".into()),
    };
    if let Err(problem) = result {
        parsed.fail(problem);
    }
    parsed
}

impl Default for ParsedOutput {
    fn default() -> Self {
        Self { status: HookRunStatus::Completed, entries: Vec::new(), effect: Effect::default() }
    }
}

impl ParsedOutput {
    pub fn failed(problem: String) -> Self {
        let mut parsed = Self::default();
        parsed.fail(problem);
        parsed
    }

    fn fail(&mut self, problem: String) {
        self.status = HookRunStatus::Failed;
        self.note(HookOutputEntryKind::Error, problem);
    }

    fn note(&mut self, kind: HookOutputEntryKind, text: String) {
        self.entries.push(HookOutputEntry { kind, text });
    }

    fn add_context(&mut self, context: Option<String>) {
        if let Some(context) = context.filter(|context| !context.trim().is_empty()) {
            self.note(HookOutputEntryKind::Context, context.clone());
            self.effect.context = Some(context);
        }
    }

    fn block(&mut self, feedback: String) {
        self.status = HookRunStatus::Blocked;
        self.note(HookOutputEntryKind::Feedback, feedback.clone());
        self.effect.feedback = Some(feedback);
    }

    fn stop(&mut self, reason: Option<String>) {
        self.status = HookRunStatus::Stopped;
        self.effect.stop = true;
        if let Some(reason) = reason {
            self.note(HookOutputEntryKind::Stop, reason);
        }
    }

    /// Parses the stdout of a hook that succeeded.
    fn parse(&mut self, event: HookEventName, text: &str) -> Result<(), String> {
        use HookEventName as E;
        if text.is_empty() {
            return Ok(());
        }
        if text.starts_with(['{', '[']) || event == E::Stop {
            let answer = JsonOutput::parse(event, text).ok_or_else(|| invalid(event))?;
            if let Some(message) = answer.system_message.clone() {
                self.note(HookOutputEntryKind::Warning, message);
            }
            return match event {
                E::SessionStart => self.session_start(answer),
                E::UserPromptSubmit => self.user_prompt_submit(answer),
                E::PreToolUse => self.pre_tool_use(answer),
                E::PostToolUse => self.post_tool_use(answer),
                E::Stop => self.at_stop(answer),
            };
        }
        if matches!(event, E::SessionStart | E::UserPromptSubmit) {
            self.add_context(Some(text.into()));
        }
        Ok(())
    }

    /// Parses the stderr of a hook that ended with exit code 2, which blocks.
    fn parse_objection(&mut self, event: HookEventName, text: &str) -> Result<(), String> {
        let what = match event {
            HookEventName::PostToolUse => "feedback",
            HookEventName::Stop => "a continuation prompt",
            _ => "a blocking reason",
        };
        if text.is_empty() {
            return Err(format!("{} hook exited with code 2 but did not write {what} to stderr", name(event)));
        }
        self.block(text.into());
        if event == HookEventName::PostToolUse {
            // The command has run already.
            self.status = HookRunStatus::Completed;
        }
        Ok(())
    }

    fn session_start(&mut self, answer: JsonOutput) -> Result<(), String> {
        self.add_context(answer.specific.additional_context);
        if !answer.proceed {
            self.stop(answer.stop_reason);
        }
        Ok(())
    }

    fn user_prompt_submit(&mut self, answer: JsonOutput) -> Result<(), String> {
        let context = answer.specific.additional_context;
        if !answer.proceed {
            self.add_context(context);
            self.stop(answer.stop_reason);
        } else if answer.decision.is_some() {
            let reason = given(answer.reason).ok_or_else(|| no_reason("UserPromptSubmit"))?;
            self.add_context(context);
            self.block(reason);
        } else {
            self.add_context(context);
        }
        Ok(())
    }

    /// A hook can deny a command here, and not allow one.
    fn pre_tool_use(&mut self, answer: JsonOutput) -> Result<(), String> {
        let specific = answer.specific;
        let unsupported = |what: &str| Err(format!("PreToolUse hook returned unsupported {what}"));
        if !answer.proceed {
            return unsupported("continue:false");
        }
        if answer.stop_reason.is_some() {
            return unsupported("stopReason");
        }
        if answer.suppress_output {
            return unsupported("suppressOutput");
        }
        if specific.updated_input.is_some() {
            return unsupported("updatedInput");
        }
        if given(specific.additional_context).is_some() {
            return unsupported("additionalContext");
        }
        let reason = match (specific.permission_decision, answer.decision) {
            (Some(PermissionDecision::Allow), _) => return unsupported("permissionDecision:allow"),
            (Some(PermissionDecision::Ask), _) => return unsupported("permissionDecision:ask"),
            (Some(PermissionDecision::Deny), _) => given(specific.permission_decision_reason).ok_or(
                "PreToolUse hook returned permissionDecision:deny without a non-empty permissionDecisionReason",
            )?,
            (None, _) if specific.permission_decision_reason.is_some() => {
                return Err("PreToolUse hook returned permissionDecisionReason without permissionDecision".into());
            }
            (None, Some(BlockDecision::Approve)) => return unsupported("decision:approve"),
            (None, Some(BlockDecision::Block)) => given(answer.reason).ok_or_else(|| no_reason("PreToolUse"))?,
            (None, None) if answer.reason.is_some() => {
                return Err("PreToolUse hook returned reason without decision".into());
            }
            (None, None) => return Ok(()),
        };
        self.block(reason.trim().into());
        Ok(())
    }

    /// The command has run; only its output for the model can change.
    fn post_tool_use(&mut self, answer: JsonOutput) -> Result<(), String> {
        let specific = answer.specific;
        if !answer.proceed {
            self.add_context(specific.additional_context);
            let stopped = answer.stop_reason.unwrap_or_else(|| "PostToolUse hook stopped execution".into());
            self.stop(Some(stopped.clone()));
            self.effect.feedback = Some(given(answer.reason).unwrap_or(stopped));
            return Ok(());
        }
        if answer.suppress_output {
            return Err("PostToolUse hook returned unsupported suppressOutput".into());
        }
        if specific.updated_mcp_tool_output.is_some() {
            return Err("PostToolUse hook returned unsupported updatedMCPToolOutput".into());
        }
        if answer.decision.is_some() {
            let reason = given(answer.reason).ok_or_else(|| no_reason("PostToolUse"))?;
            self.add_context(specific.additional_context);
            self.block(reason);
        } else if answer.reason.is_some() {
            return Err("PostToolUse hook returned reason without decision".into());
        } else {
            self.add_context(specific.additional_context);
        }
        Ok(())
    }

    fn at_stop(&mut self, answer: JsonOutput) -> Result<(), String> {
        if !answer.proceed {
            self.stop(answer.stop_reason);
        } else if answer.decision.is_some() {
            let reason = given(answer.reason).ok_or_else(|| no_reason("Stop"))?;
            self.block(reason.trim().into());
        }
        Ok(())
    }
}

fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

fn no_reason(event: &str) -> String {
    format!("{event} hook returned decision:block without a non-empty reason")
}

fn invalid(event: HookEventName) -> String {
    let spoken = match event {
        HookEventName::SessionStart => "session start",
        HookEventName::UserPromptSubmit => "user prompt submit",
        HookEventName::PreToolUse => "pre-tool-use",
        HookEventName::PostToolUse => "post-tool-use",
        HookEventName::Stop => "stop hook",
    };
    format!("hook returned invalid {spoken} JSON output")
}

/// JSON output, for any event. The members that it may have depend on the event: see [`JsonOutput::parse`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonOutput {
    #[serde(default = "yes", rename = "continue")]
    proceed: bool,
    stop_reason: Option<String>,
    #[serde(default)]
    suppress_output: bool,
    system_message: Option<String>,
    decision: Option<BlockDecision>,
    reason: Option<String>,
    #[serde(default, rename = "hookSpecificOutput", deserialize_with = "or_nothing")]
    specific: HookSpecificOutput,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum BlockDecision {
    Approve,
    Block,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HookSpecificOutput {
    additional_context: Option<String>,
    permission_decision: Option<PermissionDecision>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Value>,
    #[serde(rename = "updatedMCPToolOutput")]
    updated_mcp_tool_output: Option<Value>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum PermissionDecision {
    Allow,
    Deny,
    Ask,
}

fn yes() -> bool {
    true
}

fn or_nothing<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<HookSpecificOutput, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The members that are valid for every event.
const COMMON: &[&str] = &["continue", "stopReason", "suppressOutput", "systemMessage"];

/// The members that are valid for an event, and those of its `hookSpecificOutput`.
fn members(event: HookEventName) -> (&'static [&'static str], &'static [&'static str]) {
    const ALL: &[&str] = &["decision", "reason", "hookSpecificOutput"];
    const CONTEXT: &[&str] = &["additionalContext"];
    match event {
        HookEventName::SessionStart => (&["hookSpecificOutput"], CONTEXT),
        HookEventName::UserPromptSubmit => (ALL, CONTEXT),
        HookEventName::PreToolUse => {
            (ALL, &["additionalContext", "permissionDecision", "permissionDecisionReason", "updatedInput"])
        }
        HookEventName::PostToolUse => (ALL, &["additionalContext", "updatedMCPToolOutput"]),
        HookEventName::Stop => (&["decision", "reason"], &[]),
    }
}

impl JsonOutput {
    /// `None` when it is not valid output for the event.
    fn parse(event: HookEventName, text: &str) -> Option<Self> {
        const EVENTS: &[&str] = &["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"];
        let value: Value = serde_json::from_str(text).ok()?;
        let (own, specific) = members(event);
        let known = |name: &str| COMMON.contains(&name) || own.contains(&name);
        if !value.as_object()?.keys().all(|name| known(name)) {
            return None;
        }
        if let Some(output) = value.get("hookSpecificOutput").and_then(Value::as_object) {
            let known = |name: &str| name == "hookEventName" || specific.contains(&name);
            let event = output.get("hookEventName")?.as_str()?;
            if !EVENTS.contains(&event) || !output.keys().all(|name| known(name)) {
                return None;
            }
        }
        let answer: Self = serde_json::from_value(value).ok()?;
        let may_approve = event == HookEventName::PreToolUse;
        (may_approve || answer.decision != Some(BlockDecision::Approve)).then_some(answer)
    }
}

#[cfg(test)]
mod tests;
