//! Model calls beside the conversation: instructions, settings and headers of requests, usage and headers of responses.

use std::process::Command;

use loomd_testkit::model::{Usage, completed, custom_call, error, message};
use serde_json::{Value, json};

use crate::world::{World, answered, input};

#[tokio::test]
async fn a_changed_personality_is_sent_as_a_message_and_does_not_change_the_instructions() {
    let world = World::with("personality = \"pragmatic\"").await;
    let id = world.start(false).await;
    world.ask(id, "one").await;
    let turn = world.say_with(id, json!({ "input": input("two"), "personality": "friendly" })).await.unwrap();
    world.ended(&turn).await;
    let calls = world.model.calls();
    assert_eq!(calls[0].body["instructions"], calls[1].body["instructions"]);
    let told = calls[1].body["input"].to_string();
    assert!(told.contains("<personality_spec>"), "{told}");
}

#[tokio::test]
async fn without_a_configured_personality_the_instructions_do_not_change() {
    let world = World::new().await;
    let id = world.start(false).await;
    world.ask(id, "one").await;
    let turn = world.say_with(id, json!({ "input": input("two"), "personality": "friendly" })).await.unwrap();
    world.ended(&turn).await;
    let calls = world.model.calls();
    assert_eq!(calls[0].body["instructions"], calls[1].body["instructions"]);
}

#[tokio::test]
async fn a_review_has_the_models_own_effort_and_no_tier() {
    let world = World::with("model_supports_reasoning_summaries = true").await;
    let id = world.start(false).await;
    let hurry = json!({ "input": input("hi"), "effort": "high", "serviceTier": "flex" });
    let turn = world.say_with(id, hurry).await.unwrap();
    world.ended(&turn).await;
    let target = serde_json::from_value(json!({ "type": "custom", "instructions": "look" })).unwrap();
    let review: loomd_protocol::Turn =
        answered(async |reply| world.threads.review(id, target, None, reply).await).await.unwrap();
    world.ended(&review.id).await;
    let calls = world.model.calls();
    let said = |index: usize| (&calls[index].body["reasoning"]["effort"], calls[index].body.get("service_tier"));
    assert_eq!(said(0), (&json!("high"), Some(&json!("flex"))));
    assert_ne!(*said(1).0, json!("high"));
    assert_eq!(said(1).1, None);
}

#[tokio::test]
async fn every_model_call_has_the_facts_of_the_repository() {
    let world = World::new().await;
    let work = world.home.work();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.com"]).args(arguments).current_dir(&work);
        let done = git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("git");
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&["remote", "add", "origin", "https://user:token@host.example/a.git"]);
    let id = world.start(false).await;
    world.ask(id, "hi").await;
    let call = world.model.call(0).await;
    let metadata: Value = serde_json::from_str(call.header("x-codex-turn-metadata").unwrap()).unwrap();
    let expected = json!({ work.to_string_lossy(): {
        "associated_remote_urls": { "origin": "https://host.example/a.git" },
        "latest_git_commit_hash": git(&["rev-parse", "HEAD"]),
    } });
    assert_eq!(metadata["workspaces"], expected);
}

#[tokio::test]
async fn a_reroute_is_a_notification_for_the_accounts_provider_and_a_warning_for_others() {
    for (account, answers, method, told) in [
        (true, "other-model", "model/rerouted", 1),
        (true, "scripted-model-2026-01-02", "model/rerouted", 0),
        (false, "other-model", "model/rerouted", 0),
        (false, "other-model", "configWarning", 1),
        (false, "Scripted-Model", "configWarning", 0),
    ] {
        let world = World::with(&format!("model_providers.scripted.requires_openai_auth = {account}")).await;
        world.model.reply(message("hi").header("openai-model", answers));
        let id = world.start(false).await;
        world.ask(id, "hi").await;
        let found = world.received.of(method);
        assert_eq!(found.len(), told, "{account} {answers} {method}: {found:?}");
    }
}

#[tokio::test]
async fn the_reviewers_tokens_are_added_to_the_threads_total() {
    let world = World::with("[features]\napply_patch_freeform = true").await;
    let verdict = json!({ "risk_level": "low", "risk_score": 1, "rationale": "r", "evidence": [] }).to_string();
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** End Patch";
    let took = |input| completed(Usage { input, cached: 0, output: 1, reasoning: 0 });
    world
        .model
        .reply(custom_call("apply_patch", patch, "c1").then(took(10)))
        .reply(message(&verdict).then(took(100)))
        .reply(message("done").then(took(1000)));
    let id = world.start(false).await;
    let go = json!({ "input": input("go"), "approvalPolicy": "on-request", "approvalsReviewer": "guardian_subagent",
        "sandboxPolicy": { "type": "readOnly" } });
    let turn = world.say_with(id, go).await.unwrap();
    assert_eq!(world.ended(&turn).await, "completed");
    assert_eq!(world.model.calls().len(), 3);
    let used = world.received.of("thread/tokenUsage/updated");
    let counts: Vec<_> = used
        .iter()
        .map(|used| (&used["tokenUsage"]["total"]["totalTokens"], &used["tokenUsage"]["last"]["totalTokens"]))
        .collect();
    assert_eq!(counts, [(&json!(11), &json!(11)), (&json!(112), &json!(11)), (&json!(1113), &json!(1001))]);
    let completed = world.received.of("turn/completed");
    let usage = json!({
        "totalTokens": 1113, "inputTokens": 1110, "cachedInputTokens": 0, "cacheWriteInputTokens": 0, "outputTokens": 3,
        "reasoningOutputTokens": 0,
    });
    assert_eq!(completed[0]["usage"], usage);
}

#[tokio::test]
async fn a_completed_turn_carries_its_own_usage_and_not_that_of_the_thread() {
    let world = World::new().await;
    let took = |input, output| completed(Usage { input, cached: 3, output, reasoning: 1 });
    world.model.reply(message("one").then(took(10, 5))).reply(message("two").then(took(20, 6)));
    let id = world.start(false).await;
    world.ask(id, "one").await;
    world.ask(id, "two").await;
    world.model.reply(error(400, "invalid_request_error", "no"));
    assert_eq!(world.ask(id, "three").await, "failed");
    let usage: Vec<_> = world.received.of("turn/completed").into_iter().map(|params| params["usage"].clone()).collect();
    let counts = |total: i64, input: i64, output: i64| {
        json!({
            "totalTokens": total, "inputTokens": input, "cachedInputTokens": 3, "cacheWriteInputTokens": 0,
            "outputTokens": output, "reasoningOutputTokens": 1,
        })
    };
    assert_eq!(usage, [counts(15, 10, 5), counts(26, 20, 6), Value::Null]);
}

#[tokio::test]
async fn a_message_without_deltas_begins_empty_in_plan_mode() {
    let world = World::new().await;
    let id = world.start(false).await;
    let item = json!({ "type": "message", "role": "assistant", "id": "m", "phase": "final_answer",
        "content": [{ "type": "output_text", "text": "Intro\n<proposed_plan>\n- 1\n</proposed_plan>\n" }] });
    world.model.reply(loomd_testkit::model::done(item));
    let mode = json!({ "mode": "plan", "settings": { "model": "scripted-model" } });
    let turn = world.say_with(id, json!({ "input": input("go"), "collaborationMode": mode })).await.unwrap();
    assert_eq!(world.ended(&turn).await, "completed");
    let of = |method: &str| {
        let items = world.received.of(method).into_iter().map(|mut told| told["item"].take());
        items
            .filter(|item| item["type"] == "agentMessage")
            .map(|item| json!([item["text"], item["phase"]]))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("item/started"), [json!(["", null])]);
    assert_eq!(of("item/completed"), [json!(["Intro\n", "final_answer"])]);
}
