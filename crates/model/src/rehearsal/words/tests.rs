//! Prompts and the steps that they parse to.

use super::*;

fn check(prompt: &str, expected: &[Step]) {
    assert_eq!(parse(prompt), expected, "{prompt}");
}

fn ran(command: &str) -> Step {
    shell(command)
}

fn added(path: &str, lines: &str) -> Step {
    edit(&format!("*** Add File: {path}\n{lines}"))
}

#[test]
fn command_verbs_run_shell_commands() {
    check("run `ls -l; echo. then`", &[ran("ls -l; echo. then")]);
    check("Please run ls.", &[ran("ls")]);
    check("User: run ls", &[ran("ls")]);
    check("Run: cargo test", &[ran("cargo test")]);
    check("run ls .", &[ran("ls .")]);
    check("run:\n```sh\na\nb\n```\nsay ok", &[ran("a\nb"), Step::say("ok")]);
    let action =
        |command: &str, background, escalated| ToolAction::Run { command: command.into(), background, escalated };
    check("run `cat` in the background", &[Step::Call(action("cat", true, false))]);
    check("run `id` without the sandbox.", &[Step::Call(action("id", false, true))]);
    check("type hello", &[Step::Call(ToolAction::Type("hello\n".into()))]);
    check("read my notes.txt", &[ran("cat 'my notes.txt'")]);
    check("read file a.txt, then list src", &[ran("cat a.txt"), ran("ls src")]);
    check("list", &[ran("ls")]);
    check("grep \"it's\"", &[ran(r"grep -rn 'it'\''s' .")]);
}

#[test]
fn file_verbs_become_patches_and_commands() {
    check("write a.txt with hello", &[added("a.txt", "+hello")]);
    check("write the file `a b.txt` with \"one\\ntwo\"", &[added("a b.txt", "+one\n+two")]);
    check("create file a.txt:\n```\none\n\ntwo\n```", &[added("a.txt", "+one\n+\n+two")]);
    check("write a.txt with:\n```\none\n```", &[added("a.txt", "+one")]);
    check("write a.txt with \"\"", &[added("a.txt", "+")]);
    check("replace `old line` with `new line` in a.txt.", &[edit("*** Update File: a.txt\n@@\n-old line\n+new line")]);
    check("delete a.txt", &[edit("*** Delete File: a.txt")]);
    check("move a.txt to b.txt", &[ran("mv a.txt b.txt")]);
    check("patch\n```\n*** Begin Patch\n*** End Patch\n```", &[patch("*** Begin Patch\n*** End Patch")]);
    check("look at image x.png", &[Step::call("view_image", json!({ "path": "x.png" }))]);
}

#[test]
fn message_verbs_keep_their_text() {
    check("say Hello. How are you? Fine; thanks.", &[Step::say("Hello. How are you? Fine; thanks.")]);
    check("say \"then; run `x`\"", &[Step::say("then; run `x`")]);
    let comment = Step::Say { text: "I look".into(), phase: Some(MessagePhase::Commentary) };
    check("comment I look; say done", &[comment, Step::say("done")]);
    check("think about it. reason hard", &[Step::Think("it".into()), Step::Reason("hard".into())]);
    check("slowly; say a", &[Step::Pace(SLOW), Step::say("a")]);
    check("propose do it", &[Step::say("<proposed_plan>\ndo it\n</proposed_plan>\n")]);
    check("wait 2 s then pause 10 ms", &[Step::Wait(Duration::from_secs(2)), Step::Wait(Duration::from_millis(10))]);
}

#[test]
fn tool_verbs_become_tool_calls() {
    let plan = json!({ "plan": [{ "step": "a", "status": "in_progress" }, { "step": "b", "status": "pending" }] });
    check("plan a, b", &[Step::call("update_plan", plan.clone())]);
    check("plan:\n```\n- a\n- b\n```", &[Step::call("update_plan", plan)]);
    let options = json!([
        { "description": "The answer is red.", "label": "red" }, { "description": "The answer is blue.", "label": "blue" },
    ]);
    let question = json!({ "id": "answer", "header": "Question", "question": "Which one?", "options": options });
    check(
        "ask me Which one? with options red, blue",
        &[Step::call("request_user_input", json!({ "questions": [question] }))],
    );
    check(
        "call f with {\"a\": \"x; y\"}; call g",
        &[Step::call("f", json!({ "a": "x; y" })), Step::call("g", json!({}))],
    );
    check("call f with nonsense", &[Step::call("f", json!("nonsense"))]);
    check("call custom c with text", &[Step::Call(ToolAction::Custom { name: "c".into(), input: "text".into() })]);
    check("spawn an agent to \"say hi\"", &[Step::call("spawn_agent", json!({ "message": "say hi" }))]);
    check("wait for agents; close agent", &[Step::Call(ToolAction::WaitAgents), Step::Call(ToolAction::CloseAgent)]);
    let query = Some("rust".to_owned());
    check("search the web for rust", &[web(ResponsesApiWebSearchAction::Search { queries: None, query })]);
    check("run `a`; also run `b`", &[ran("a"), Step::Also, ran("b")]);
}

#[test]
fn failures_repeats_and_usage_parse_and_plain_text_does_not() {
    let fail = |words: &str, times| Step::Fail { error: Box::new(failures::by_name(words).unwrap()), times };
    check("fail with overloaded", &[fail("overloaded", None)]);
    check("fail with status 502 twice then say ok", &[fail("status 502", Some(2)), Step::say("ok")]);
    check("repeat 2 times: run `a`", &[ran("a"), ran("a")]);
    check("use 1000 tokens", &[Step::Usage(tokens(1000, 0, 0, 0))]);
    check("use 1000 input and 50 output tokens", &[Step::Usage(tokens(1000, 0, 50, 0))]);
    check("1. run `a`\n2) run `b`\n- run `c`", &[ran("a"), ran("b"), ran("c")]);
    for nothing in ["", "Hello there", "What is the plan?", "running late", "fail with joy", "```", "\u{1F600}"] {
        check(nothing, &[]);
    }
    assert!(parse("demo").len() > 5);
    assert_eq!(parse("repeat 99999 times: run `a`").len(), MAX_REPEATS);
    assert!(parse("repeat 100 times: repeat 100 times: repeat 100 times: say a").len() <= MAX_STEPS);
}
