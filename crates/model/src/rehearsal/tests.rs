//! Conversations with the rehearsal, response by response.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{CallHeaders, ModelEvent, Reasoning, ToolSpec, Tools};

fn request(prompt: &str) -> Request {
    let tool = |name: &str| ToolSpec::Function {
        name: name.into(),
        description: String::new(),
        strict: false,
        parameters: json!({}),
    };
    let message = json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": prompt }] });
    Request {
        model: "rehearsal".into(),
        instructions: "Be brief.".into(),
        input: vec![item(message)],
        tools: Arc::new(Tools::new(vec![tool("exec_command"), tool("update_plan")])),
        parallel_tool_calls: true,
        reasoning: Some(Reasoning::default()),
        verbosity: None,
        output_schema: None,
        service_tier: None,
        prompt_cache_key: "t".into(),
        headers: CallHeaders { session_id: "t".into(), ..CallHeaders::default() },
    }
}

fn item(item: serde_json::Value) -> InputItem {
    InputItem::new(&serde_json::from_value(item).unwrap()).unwrap()
}

/// Collects all events of a response, with paused time.
fn events(rehearsal: &mut Rehearsal, request: &Request) -> Vec<Result<ModelEvent, ModelError>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut events = rehearsal.stream(request).unwrap();
        let mut seen = Vec::new();
        while let Some(event) = events.next().await {
            seen.push(event);
        }
        seen
    })
}

/// Plays a turn and returns the items of each response, until one makes no calls.
fn turn(prompt: &str) -> Vec<Vec<String>> {
    let (mut rehearsal, mut request) = (Rehearsal::new(None), request(prompt));
    let mut answers = Vec::new();
    loop {
        let (mut done, mut outputs) = (Vec::new(), Vec::new());
        for event in events(&mut rehearsal, &request) {
            match event {
                Ok(ModelEvent::ItemDone { item, .. }) => {
                    done.push(match &item {
                        ResponseItem::Message { content, .. } => format!("say {}", text_of(content)),
                        ResponseItem::Reasoning { .. } => "think".into(),
                        ResponseItem::FunctionCall { name, arguments, call_id, .. } => {
                            outputs.push(json!({ "type": "function_call_output", "call_id": call_id, "output": "ok" }));
                            format!("{name} {arguments}")
                        }
                        ResponseItem::CustomToolCall { name, call_id, .. } => {
                            outputs
                                .push(json!({ "type": "custom_tool_call_output", "call_id": call_id, "output": "ok" }));
                            name.clone()
                        }
                        other => format!("{other:?}"),
                    });
                    request.input.extend(InputItem::new(&item));
                }
                Ok(_) => {}
                Err(error) => done.push(error.to_string()),
            }
        }
        answers.push(done);
        if outputs.is_empty() {
            return answers;
        }
        assert!(answers.len() < 50, "{prompt:?} never ends");
        request.input.extend(outputs.into_iter().map(item));
        // Context in a user message, which is not input of the user.
        request.input.push(item(json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "<environment_context>x" }] })));
    }
}

#[test]
fn a_prompt_continues_after_each_tool_output() {
    assert_eq!(
        turn("comment First. run `a`; also run `b`\nwrite f with x\nsay All done"),
        [
            vec!["say First", r#"exec_command {"cmd":"a"}"#, r#"exec_command {"cmd":"b"}"#],
            vec!["apply_patch"],
            vec!["say All done"],
        ]
    );
    assert_eq!(turn("run `a`"), [vec![r#"exec_command {"cmd":"a"}"#], vec!["say Done."]]);
    assert_eq!(turn("hello"), [[format!("say {}", texts::INTRODUCTION)]]);
    assert_eq!(turn("fail with overloaded"), [["Selected model is at capacity. Please try a different model."]]);
}

#[test]
fn a_failure_with_a_count_passes_after_it() {
    let (mut rehearsal, request) = (Rehearsal::new(None), request("fail with disconnect twice; say ok"));
    let failed: Vec<_> = (0..4).map(|_| events(&mut rehearsal, &request).iter().any(Result::is_err)).collect();
    assert_eq!(failed, [true, true, false, false]);
}

#[test]
fn the_answer_conforms_to_the_output_schema() {
    let schema = Some(json!({ "type": "object", "properties": { "n": { "type": "integer" } } }));
    for prompt in ["hello", "think hard"] {
        let request = Request { output_schema: schema.clone(), ..request(prompt) };
        let all = events(&mut Rehearsal::new(None), &request);
        let said = all.iter().any(|event| {
            matches!(event, Ok(ModelEvent::ItemDone { item: ResponseItem::Message { content, .. }, .. }) if text_of(content) == r#"{"n":0}"#)
        });
        assert!(said, "{prompt}: {all:?}");
    }
}

#[test]
fn a_summary_ends_the_prompt() {
    let mut rehearsal = Rehearsal::new(None);
    let asked = Request { tools: Arc::new(Tools::default()), ..request("run `a`; summarise") };
    let all = events(&mut rehearsal, &asked);
    let Some(Ok(ModelEvent::ItemDone { item: ResponseItem::Message { content, .. }, .. })) = all.iter().rev().nth(1)
    else {
        panic!("no message: {all:?}")
    };
    assert_eq!(turn(&format!("Here is a summary:\n{}", text_of(content))), [["say Done."]]);
}

#[test]
fn the_demo_reasons_plans_runs_and_patches() {
    let answers = turn("demo");
    let all = answers.concat();
    for what in ["think", "update_plan", "exec_command", "apply_patch", "say I looked around"] {
        assert!(all.iter().any(|done| done.starts_with(what)), "{what}: {all:?}");
    }
}

#[test]
fn the_examples_in_the_documentation_parse() {
    const DOCS: &str = include_str!("../../../../docs/rehearsal.md");
    let block = |fence: &str, end: &str| {
        let start = DOCS.find(fence).unwrap() + fence.len();
        &DOCS[start..start + DOCS[start..].find(end).unwrap()]
    };
    let example = words::parse(block("````\n", "\n````"));
    assert_eq!(example.len(), 9, "{example:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.jsonl");
    std::fs::write(&file, block("```jsonl\n", "```")).unwrap();
    let threads = scenario::load(&file).unwrap();
    assert_eq!(threads[0].iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 4]);
    let table = block("| words | what happens | what a client sees |\n|---|---|---|\n", "\n\n");
    for row in table.lines() {
        let words = row.trim_start_matches(['|', ' ', '`']);
        let verb = words.split(|char: char| !char.is_ascii_alphabetic()).next().unwrap();
        assert!(words::is_verb(verb), "{row}");
    }
}

/// Checks the order of events that every stream guarantees.
fn check_stream(all: &[Result<ModelEvent, ModelError>]) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    for (index, event) in all.iter().enumerate() {
        let last = index + 1 == all.len();
        match event {
            Ok(ModelEvent::Headers(_)) if index == 0 => {}
            _ if index == 0 => return Err("the first event is not `Headers`".into()),
            Ok(ModelEvent::ItemAdded { id: Some(id), .. }) => open.push(id.clone()),
            Ok(ModelEvent::ItemDone { id, .. }) => open.retain(|open| Some(open) != id.as_ref()),
            Ok(ModelEvent::TextDelta { item_id: Some(id), .. }) if !open.contains(id) => {
                return Err("a delta without an open item".into());
            }
            Ok(ModelEvent::Completed { .. }) if last && open.is_empty() => return Ok(()),
            Ok(ModelEvent::Completed { .. }) => {
                return Err("`Completed` is not the last event, or an item is open".into());
            }
            Err(_) if last => return Ok(()),
            Err(_) => return Err("an event follows an error".into()),
            Ok(_) => {}
        }
    }
    Err("the stream has no last event".into())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_prompt_gives_a_well_formed_deterministic_stream(
        prompt in "(run|say|think|reason|write|patch|replace|ask|plan|repeat 3 times:|fail with|call|also|wait|slowly|use|limit|play|item|event|spawn|draw|search|with|in|to|then|[;.:`\"{}\n ]|```\n|ls|a\\.txt|5|overloaded|ä|😀){0,25}",
    ) {
        let mut request = request(&prompt);
        for made in 0..3 {
            let all = events(&mut Rehearsal::new(None), &request);
            prop_assert_eq!(check_stream(&all), Ok(()), "{:?} {:?}", prompt, all);
            prop_assert_eq!(&all, &events(&mut Rehearsal::new(None), &request), "it is not the same twice");
            request.input.push(item(json!({ "type": "function_call", "name": "f", "arguments": "{}", "call_id": format!("c{made}") })));
            request.input.push(item(json!({ "type": "function_call_output", "call_id": format!("c{made}"), "output": "ok" })));
        }
    }

    #[test]
    fn any_text_gives_a_well_formed_stream(prompt in "\\PC*") {
        let all = events(&mut Rehearsal::new(None), &request(&prompt));
        prop_assert_eq!(check_stream(&all), Ok(()));
    }
}
