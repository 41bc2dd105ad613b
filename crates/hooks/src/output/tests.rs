use HookEventName::{PostToolUse, PreToolUse, SessionStart, Stop, UserPromptSubmit};
use proptest::prelude::*;

use super::*;

const EVENTS: [HookEventName; 5] = [SessionStart, UserPromptSubmit, PreToolUse, PostToolUse, Stop];

fn parse(event: HookEventName, outcome: Outcome, stdout: &str, stderr: &str) -> ParsedOutput {
    parse_output(event, HookOutput { outcome, stdout, stderr, timeout_seconds: 7 })
}

/// The parsed output in one line: status, entries, effect.
fn shown(parsed: &ParsedOutput) -> String {
    use std::fmt::Write;
    let mut line = format!("{:?}", parsed.status).to_lowercase();
    for HookOutputEntry { kind, text } in &parsed.entries {
        write!(line, ", {} {text:?}", format!("{kind:?}").to_lowercase()).unwrap();
    }
    let Effect { stop, context, feedback } = &parsed.effect;
    line += if *stop { "; stop" } else { "" };
    for (what, text) in [("context", context), ("feedback", feedback)] {
        if let Some(text) = text {
            write!(line, "; {what} {text:?}").unwrap();
        }
    }
    line
}

fn check(event: HookEventName, stdout: &str, expected: &str) {
    let heard = parse(event, Outcome::Ended(Exit::Code(0)), stdout, "noise");
    assert_eq!(shown(&heard), expected, "{event:?} {stdout}");
}

fn specific(event: HookEventName, members: &str) -> String {
    format!(r#"{{"hookSpecificOutput":{{"hookEventName":"{}",{members}}}}}"#, name(event))
}

#[test]
fn a_failed_hook_blocks_nothing() {
    let check = |outcome, expected: &str| {
        for event in EVENTS {
            assert_eq!(shown(&parse(event, outcome, r#"{"continue":false}"#, "no")), expected, "{event:?}");
        }
    };
    check(Outcome::Ended(Exit::Code(1)), r#"failed, error "hook exited with code 1""#);
    check(Outcome::Ended(Exit::Signal(9)), r#"failed, error "hook exited without a status code""#);
    check(Outcome::TimedOut, r#"failed, error "hook timed out after 7s""#);
    check(Outcome::Cancelled, r#"failed, error "hook was interrupted""#);
}

#[test]
fn plain_stdout_is_context_for_events_that_take_it() {
    for event in EVENTS {
        check(event, "", "completed");
        check(event, " \n", "completed");
        check(event, "{}", "completed");
    }
    for event in [SessionStart, UserPromptSubmit] {
        check(event, " a\nb \n", r#"completed, context "a\nb"; context "a\nb""#);
    }
    for event in [PreToolUse, PostToolUse] {
        check(event, "text", "completed");
    }
    check(Stop, "text", r#"failed, error "hook returned invalid stop hook JSON output""#);
}

#[test]
fn output_that_does_not_fit_the_event_is_invalid() {
    let names = ["session start", "user prompt submit", "pre-tool-use", "post-tool-use", "stop hook"];
    for (event, name) in EVENTS.into_iter().zip(names) {
        let invalid = format!("failed, error \"hook returned invalid {name} JSON output\"");
        for text in [
            "{broken",
            "[1]",
            r#"{"foo":1}"#,
            r#"{"continue":"no"}"#,
            r#"{"continue":null}"#,
            r#"{"suppressOutput":null}"#,
            r#"{"decision":"maybe"}"#,
            r#"{} x"#,
            r#"{"hookSpecificOutput":{"additionalContext":"c"}}"#,
            r#"{"hookSpecificOutput":{"hookEventName":"Nope"}}"#,
        ] {
            check(event, text, &invalid);
        }
        check(event, &specific(event, r#""zzz":1"#), &invalid);
    }
    check(Stop, r#"{"hookSpecificOutput":null}"#, r#"failed, error "hook returned invalid stop hook JSON output""#);
    let block = r#"{"decision":"block","reason":"r"}"#;
    check(SessionStart, block, r#"failed, error "hook returned invalid session start JSON output""#);
    let approve = r#"{"decision":"approve"}"#;
    check(PostToolUse, approve, r#"failed, error "hook returned invalid post-tool-use JSON output""#);
}

#[test]
fn a_system_message_is_a_warning_for_every_event() {
    for event in EVENTS {
        check(
            event,
            "\n{\"systemMessage\":\"m\",\"reason\":null}".replace(",\"reason\":null", "").as_str(),
            r#"completed, warning "m""#,
        );
    }
    check(Stop, r#"{"systemMessage":"m","systemMessage":"n"}"#, r#"completed, warning "n""#);
    check(SessionStart, r#"{"hookSpecificOutput":null}"#, "completed");
}

#[test]
fn a_session_start_hook_can_add_context_or_stop() {
    let context = specific(SessionStart, r#""additionalContext":" c ""#);
    check(SessionStart, &context, r#"completed, context " c "; context " c ""#);
    check(SessionStart, &specific(SessionStart, r#""additionalContext":" ""#), "completed");
    check(SessionStart, r#"{"continue":false}"#, "stopped; stop");
    let stop = r#"{"continue":false,"stopReason":"s","systemMessage":"m"}"#;
    check(SessionStart, stop, r#"stopped, warning "m", stop "s"; stop"#);
    let exit = parse(SessionStart, Outcome::Ended(Exit::Code(2)), "", "no");
    assert_eq!(shown(&exit), r#"failed, error "hook exited with code 2""#);
}

#[test]
fn a_prompt_hook_can_block_the_prompt() {
    let no_reason = "UserPromptSubmit hook returned decision:block without a non-empty reason";
    for text in [r#"{"decision":"block"}"#, r#"{"decision":"block","reason":" "}"#] {
        check(UserPromptSubmit, text, &format!("failed, error {no_reason:?}"));
    }
    let both =
        r#"{"decision":"block","reason":" r ","hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"c"}}"#;
    check(UserPromptSubmit, both, r#"blocked, context "c", feedback " r "; context "c"; feedback " r ""#);
    let stop = r#"{"continue":false,"stopReason":"s","decision":"block","reason":"r"}"#;
    check(UserPromptSubmit, stop, r#"stopped, stop "s"; stop"#);
    check(UserPromptSubmit, r#"{"reason":"r","suppressOutput":true,"stopReason":"s"}"#, "completed");
}

#[test]
fn a_pre_tool_hook_can_deny_but_not_allow_a_command() {
    let denied = r#"blocked, feedback "r"; feedback "r""#;
    let deny = r#""permissionDecision":"deny","permissionDecisionReason":" r ""#;
    check(PreToolUse, &specific(PreToolUse, deny), denied);
    check(PreToolUse, r#"{"decision":"block","reason":" r "}"#, denied);
    let failed = |text: &str, problem: &str| {
        check(PreToolUse, text, &format!("failed, error \"PreToolUse hook returned {problem}\""));
    };
    failed(r#"{"continue":false,"stopReason":"s","suppressOutput":true}"#, "unsupported continue:false");
    failed(r#"{"stopReason":"","suppressOutput":true}"#, "unsupported stopReason");
    failed(r#"{"suppressOutput":true,"decision":"block","reason":"r"}"#, "unsupported suppressOutput");
    let own = |members: &str, problem: &str| failed(&specific(PreToolUse, members), problem);
    own(&format!(r#""updatedInput":{{}},"additionalContext":"c",{deny}"#), "unsupported updatedInput");
    own(&format!(r#""additionalContext":"c",{deny}"#), "unsupported additionalContext");
    own(r#""permissionDecision":"allow""#, "unsupported permissionDecision:allow");
    own(r#""permissionDecision":"ask""#, "unsupported permissionDecision:ask");
    let no_reason = "permissionDecision:deny without a non-empty permissionDecisionReason";
    own(r#""permissionDecision":"deny","permissionDecisionReason":" ""#, no_reason);
    own(r#""permissionDecisionReason":" ""#, "permissionDecisionReason without permissionDecision");
    failed(r#"{"decision":"approve","reason":"r"}"#, "unsupported decision:approve");
    failed(r#"{"decision":"block"}"#, "decision:block without a non-empty reason");
    failed(r#"{"reason":" "}"#, "reason without decision");
}

#[test]
fn a_post_tool_hook_can_replace_the_feedback_for_the_model() {
    check(PostToolUse, r#"{"decision":"block","reason":" r "}"#, r#"blocked, feedback " r "; feedback " r ""#);
    let context = specific(PostToolUse, r#""additionalContext":"c""#);
    check(PostToolUse, &context, r#"completed, context "c"; context "c""#);
    let stopped = "PostToolUse hook stopped execution";
    check(PostToolUse, r#"{"continue":false}"#, &format!("stopped, stop {stopped:?}; stop; feedback {stopped:?}"));
    let reason = r#"{"continue":false,"stopReason":"s","reason":"r"}"#;
    check(PostToolUse, reason, r#"stopped, stop "s"; stop; feedback "r""#);
    let failed = |text: &str, problem: &str| {
        check(PostToolUse, text, &format!("failed, error \"PostToolUse hook returned {problem}\""));
    };
    failed(r#"{"suppressOutput":true,"decision":"block","reason":"r"}"#, "unsupported suppressOutput");
    failed(&specific(PostToolUse, r#""updatedMCPToolOutput":1"#), "unsupported updatedMCPToolOutput");
    failed(r#"{"decision":"block"}"#, "decision:block without a non-empty reason");
    failed(r#"{"reason":"r"}"#, "reason without decision");
}

#[test]
fn a_stop_hook_can_continue_the_turn() {
    check(Stop, r#"{"decision":"block","reason":" r "}"#, r#"blocked, feedback "r"; feedback "r""#);
    check(Stop, r#"{"continue":false,"decision":"block","reason":"r"}"#, "stopped; stop");
    check(Stop, r#"{"reason":"r"}"#, "completed");
    let no_reason = "Stop hook returned decision:block without a non-empty reason";
    check(Stop, r#"{"decision":"block","systemMessage":"m"}"#, &format!("failed, warning \"m\", error {no_reason:?}"));
}

#[test]
fn exit_code_2_blocks_with_stderr_as_the_reason() {
    let check = |event, stderr: &str, expected: &str| {
        let heard = parse(event, Outcome::Ended(Exit::Code(2)), r#"{"continue":false}"#, stderr);
        assert_eq!(shown(&heard), expected, "{event:?}");
    };
    for event in [UserPromptSubmit, PreToolUse, Stop] {
        check(event, " no\n", r#"blocked, feedback "no"; feedback "no""#);
    }
    check(PostToolUse, " no\n", r#"completed, feedback "no"; feedback "no""#);
    let silent = |event, what: &str| {
        let text = format!("{} hook exited with code 2 but did not write {what} to stderr", name(event));
        check(event, " ", &format!("failed, error {text:?}"));
    };
    silent(UserPromptSubmit, "a blocking reason");
    silent(PreToolUse, "a blocking reason");
    silent(PostToolUse, "feedback");
    silent(Stop, "a continuation prompt");
}

proptest! {
    #[test]
    fn no_hook_output_panics(text: String, code in -1i32..4) {
        for event in EVENTS {
            let outcome = Outcome::Ended(Exit::Code(code));
            let heard = parse(event, outcome, &format!("{{{text}"), &text);
            prop_assert!(heard.status != HookRunStatus::Running);
            let heard = parse(event, outcome, &text, &text);
            prop_assert!(heard.status != HookRunStatus::Running);
        }
    }
}
