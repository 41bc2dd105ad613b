//! The conversation and the records of a thread, in memory and on disk.

use std::sync::atomic::Ordering;
use std::time::Duration;

use loomd_agent::{ForkForm, Opened, Source};
use loomd_protocol::{ResponseItem, ReviewTarget, Thread, Turn};
use loomd_store::{FileStore, GitPatch, ListQuery, Options, Store};
use loomd_testkit::Gate;
use loomd_testkit::model::{added, failed, function_call, message, reasoning, text_delta};
use serde_json::json;

use crate::world::{ME, World, answered, input, until};

/// Longer than an idle thread keeps its conversation in memory.
const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn an_idle_thread_keeps_or_reloads_its_conversation() {
    for ephemeral in [true, false] {
        let world = World::new().await;
        let id = world.start(ephemeral).await;
        world.ask(id, "first").await;
        tokio::time::pause();
        tokio::time::sleep(LONG).await;
        tokio::time::resume();
        world.ask(id, "second").await;
        assert_eq!(world.last_call().await, ["first", "second"], "ephemeral: {ephemeral}");
    }
}

#[tokio::test]
async fn a_rollback_that_is_refused_changes_nothing() {
    let world = World::new().await;
    let id = world.start(true).await;
    world.ask(id, "first").await;
    let rolled_back = answered::<Thread>(async |reply| world.threads.roll_back(id, 1, reply).await).await;
    assert_eq!(
        rolled_back.expect_err("there is nothing to roll back to").to_string(),
        "thread rollback requires a persisted rollout path"
    );
    world.ask(id, "second").await;
    assert_eq!(world.last_call().await, ["first", "second"]);
}

#[tokio::test]
async fn an_ephemeral_fork_has_the_conversation_of_its_source() {
    let world = World::new().await;
    let id = world.start(false).await;
    world.ask(id, "first").await;
    let opened = answered(async |reply| {
        world
            .threads
            .fork(Source::Id(id), ForkForm { ephemeral: true, ..ForkForm::default() }, world.resolve(), ME, reply)
            .await;
    });
    let copy = opened.await.expect("a copy").thread.id.parse().expect("an id");
    world.ask(copy, "second").await;
    assert_eq!(world.last_call().await, ["first", "second"]);
}

#[tokio::test]
async fn input_is_recorded_when_the_compaction_before_it_fails() {
    let world = World::with("model_auto_compact_token_limit = 10").await;
    let id = world.start(false).await;
    world.ask(id, "first").await;
    world.model.reply(failed("insufficient_quota", "pay"));
    assert_eq!(world.ask(id, "second").await, "failed");
    assert_eq!(
        world.stored(id).await.last(),
        Some(&("failed".to_owned(), vec!["userMessage".to_owned()])),
        "what was said is there"
    );
}

#[tokio::test]
async fn the_published_items_of_a_broken_answer_are_recorded() {
    let world = World::new().await;
    let id = world.start(false).await;
    let begun = added(json!({ "type": "message", "role": "assistant", "id": "msg_a", "content": [] }));
    let plan = text_delta("Well:\n<proposed_plan>\n- one\n");
    world.model.reply(reasoning(&["why"], &[]).then(begun).then(plan).close());
    let mode = json!({ "mode": "plan", "settings": { "model": "scripted-model" } });
    let turn = world.say_with(id, json!({ "input": input("plan"), "collaborationMode": mode })).await.expect("a turn");
    assert_eq!(world.ended(&turn).await, "failed");
    let shown = world.received.of("item/completed").iter().map(|told| told["item"]["type"].clone()).collect::<Vec<_>>();
    assert_eq!(shown, ["userMessage", "reasoning", "plan", "agentMessage"]);
    let stored = world.stored(id).await;
    let kinds = ["userMessage", "reasoning", "plan", "agentMessage"].map(String::from);
    assert_eq!(stored, [("failed".to_owned(), kinds.to_vec())]);
}

#[tokio::test]
async fn the_model_is_not_called_while_the_rollout_cannot_be_written() {
    let world = World::new().await;
    let id = world.start(false).await;
    world.ask(id, "first").await;
    let path = world.threads.read(id, false, "").await.expect("a thread").path.expect("a path");
    let (kept, gone) = (std::fs::read(&path).expect("a rollout"), std::fs::remove_file(&path));
    gone.expect("it can be deleted");
    std::fs::create_dir(&path).expect("something that cannot be written to");
    let calls = world.model.calls().len();
    let refused = world.say(id, "second").await;
    if let Ok(turn) = refused {
        assert_eq!(world.ended(&turn).await, "failed");
    }
    assert_eq!(world.model.calls().len(), calls, "the model is not asked about what cannot be kept");
    std::fs::remove_dir(&path).expect("it is empty");
    std::fs::write(&path, kept).expect("a rollout");
    assert_eq!(world.ask(id, "third").await, "completed");
    assert_eq!(world.last_call().await, ["first", "third"]);
}

#[tokio::test]
async fn the_model_is_not_called_when_the_first_record_cannot_be_written() {
    let world = World::new().await;
    let id = world.start(false).await;
    let sessions = world.home.write("sessions", "in the way");
    assert_eq!(world.ask(id, "first").await, "failed");
    assert_eq!(world.model.calls().len(), 0);
    std::fs::remove_file(sessions).expect("it can be removed");
    assert_eq!(world.ask(id, "second").await, "completed");
    assert_eq!(world.last_call().await, ["second"]);
}

#[tokio::test]
async fn the_end_of_a_background_command_that_races_with_the_turns_end_is_recorded() {
    for round in 0..12 {
        let world = World::new().await;
        let id = world.start(false).await;
        let fifo = world.home.work().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
        let arguments = json!({ "cmd": "read x < fifo", "login": false, "yield_time_ms": 1 });
        let gate = Gate::new();
        world.model.reply(function_call("exec_command", arguments, "call_b")).reply(message("left").after(&gate));
        let turn = world.say(id, "start it").await.expect("a turn");
        world.model.call(1).await;
        let end = tokio::task::spawn_blocking(move || std::fs::write(fifo, "go\n"));
        // The turn ends at about the same time.
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        gate.open();
        end.await.expect("a task").expect("a pipe");
        world.ended(&turn).await;
        world.received.find("item/completed", |told| told["item"]["id"] == "call_b").await;
        let items = world.stored(id).await.remove(0).1;
        assert!(items.contains(&"commandExecution".to_owned()), "{round}: {items:?}");
    }
}

#[tokio::test]
async fn a_command_that_ends_while_another_process_holds_the_lease_is_recorded_later() {
    let world = World::new().await;
    let id = world.start(false).await;
    let fifo = world.home.work().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let arguments = json!({ "cmd": "read x < fifo", "login": false, "yield_time_ms": 1 });
    world.model.reply(function_call("exec_command", arguments, "call_b"));
    world.ask(id, "start it").await;
    let other = FileStore::new(Options { home: world.home.path(), sqlite_home: None });
    let reader = other.open(id).await.expect("a stored thread");
    let writer = reader.writer().await.expect("no turn is running");
    tokio::task::spawn_blocking(move || std::fs::write(fifo, "go\n")).await.expect("a task").expect("a pipe");
    drop(writer);
    world.ask(id, "and now?").await;
    world.received.find("item/completed", |told| told["item"]["id"] == "call_b").await;
    let items = world.stored(id).await.remove(0).1;
    assert!(items.contains(&"commandExecution".to_owned()), "{items:?}");
}

#[tokio::test]
async fn the_end_of_a_background_command_is_published_after_it_is_recorded() {
    let world = World::new().await;
    let id = world.start(false).await;
    let fifo = world.home.work().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let arguments = json!({ "cmd": "read x < fifo", "login": false, "yield_time_ms": 1 });
    world.model.reply(function_call("exec_command", arguments, "call_b"));
    world.ask(id, "start it").await;
    world.store.full.store(true, Ordering::Relaxed);
    tokio::task::spawn_blocking(move || std::fs::write(fifo, "go\n")).await.expect("a task").expect("a pipe");
    // A turn is refused while earlier records cannot be written.
    until("refused turn", async || world.say(id, "too early").await.is_err()).await;
    assert!(!world.received.of("item/completed").iter().any(|told| told["item"]["id"] == "call_b"), "not written");
    world.store.full.store(false, Ordering::Relaxed);
    world.received.find("item/completed", |told| told["item"]["id"] == "call_b").await;
    let items = world.stored(id).await.remove(0).1;
    assert!(items.contains(&"commandExecution".to_owned()), "{items:?}");
}

#[tokio::test]
async fn an_item_that_cannot_be_recorded_is_not_published() {
    let world = World::new().await;
    let id = world.start(false).await;
    world.ask(id, "first").await;
    let gate = Gate::new();
    world.model.reply(message("lost").after(&gate));
    let turn = world.say(id, "second").await.expect("a turn");
    world.received.find("item/completed", |told| told["item"]["content"][0]["text"] == "second").await;
    world.store.full.store(true, Ordering::Relaxed);
    gate.open();
    let end = world.received.find("turn/completed", |params| params["turn"]["id"] == *turn).await;
    assert_eq!(end["turn"]["status"], "failed");
    let why = end["turn"]["error"]["message"].as_str().expect("a message");
    assert!(why.starts_with("the thread could not be saved: disk: "), "{why}");
    let shown = world.received.of("item/completed");
    assert!(!shown.iter().any(|told| told["item"]["text"] == "lost"), "{shown:#?}");
    world.store.full.store(false, Ordering::Relaxed);
    world.ask(id, "third").await;
    assert_eq!(world.last_call().await, ["first", "second", "third"]);
}

#[tokio::test]
async fn the_preview_of_a_thread_with_a_clients_history_is_its_first_user_message() {
    let world = World::new().await;
    let user =
        |text: &str| json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] });
    let items = [user("<environment_context>x</environment_context>"), user(" brought along "), user("later")];
    let items: Vec<ResponseItem> =
        items.into_iter().map(|item| serde_json::from_value(item).expect("an item")).collect();
    let opened: Result<Opened, _> = answered(async |reply| {
        world.threads.resume_history(items, world.resolve(), ME, reply).await;
    })
    .await;
    let thread = opened.expect("a thread").thread;
    assert_eq!(thread.preview, "brought along");
    let id = thread.id.parse().expect("an id");
    assert_eq!(world.threads.read(id, false, "").await.expect("a thread").preview, "brought along");
    world.ask(id, "and on").await;
    assert_eq!(world.threads.read(id, false, "").await.expect("a thread").preview, "brought along");
}

#[tokio::test]
async fn a_thread_with_only_a_review_is_listed() {
    let world = World::new().await;
    let id = world.start(false).await;
    world.model.reply(message("looks fine"));
    let turn: Result<Turn, _> = answered(async |reply| {
        let target = ReviewTarget::Custom { instructions: Some("Look at my changes.".into()) };
        world.threads.review(id, target, None, reply).await;
    })
    .await;
    world.ended(&turn.expect("a turn").id).await;
    let restarted = FileStore::new(Options { home: world.home.path(), sqlite_home: None });
    let page = restarted.list(ListQuery { providers: None, ..ListQuery::new("") }).await.expect("a list");
    let shown: Vec<_> = page.threads.iter().map(|thread| (thread.id(), thread.preview.as_deref())).collect();
    assert_eq!(shown, [(id, Some("Look at my changes."))]);
    // The published items equal the stored ones.
    let live: Vec<_> = world.received.of("item/completed").iter().map(|told| told["item"]["type"].clone()).collect();
    assert_eq!(json!(live), json!(world.stored(id).await.remove(0).1));
}

#[tokio::test]
async fn name_and_git_facts_of_a_thread_without_turns_are_shown() {
    let world = World::new().await;
    let id = world.start(false).await;
    answered(async |reply| world.threads.rename(id, "mine".into(), reply).await).await.expect("a name");
    let patch = GitPatch { branch: Some(Some("topic".into())), ..GitPatch::default() };
    let patched = world.threads.patch_git(id, patch, "", || Ok(())).await.expect("a thread");
    let read = world.threads.read(id, false, "").await.expect("a thread");
    for thread in [patched, read] {
        assert_eq!(thread.name.as_deref(), Some("mine"));
        assert_eq!(thread.git_info.and_then(|git| git.branch).as_deref(), Some("topic"));
    }
}

#[tokio::test]
async fn unloading_a_thread_kills_its_background_commands() {
    let world = World::new().await;
    let id = world.start(false).await;
    let arguments = json!({ "cmd": "sleep 60", "login": false, "yield_time_ms": 1 });
    world.model.reply(function_call("exec_command", arguments, "call_b"));
    world.ask(id, "start it").await;
    world.threads.close_all().await;
    let item = world.received.find("item/completed", |told| told["item"]["id"] == "call_b").await;
    assert_eq!(item["item"]["status"], "failed");
    let items = world.stored(id).await.remove(0).1;
    assert!(items.contains(&"commandExecution".to_owned()), "{items:?}");
    until("free thread", async || !world.threads.is_loaded(id)).await;
}

#[tokio::test]
async fn a_turn_whose_task_panics_is_recorded_as_failed() {
    for method in ["item/started", "item/completed", "thread/tokenUsage/updated"] {
        let world = World::new().await;
        let id = world.start(false).await;
        world.model.reply(message("one"));
        *world.received.breaks_at.lock().expect("a lock") = Some(method);
        assert_eq!(world.ask(id, "first").await, "failed", "{method}");
        let stored = world.stored(id).await;
        assert_eq!((stored.len(), stored[0].0.as_str()), (1, "failed"), "{method}: {stored:?}");
        world.model.reply(message("two"));
        assert_eq!(world.ask(id, "second").await, "completed");
        assert_eq!(world.last_call().await, ["first", "second"]);
        assert_eq!(world.stored(id).await.len(), 2);
    }
}
