//! Hooks: what they block, and that they end with their turn.

use std::fs;

use loomd_testkit::Gate;
use loomd_testkit::model::{message, shell};
use serde_json::{Value, json};

use crate::world::{World, until};

/// A world with hooks, each a script by the name of its event.
async fn world(hooks: &[(&str, &str)]) -> World {
    let world = World::with("[features]\ncodex_hooks = true").await;
    let hook = |script: &str| json!([{ "hooks": [{ "type": "command", "command": script }] }]);
    let hooks: serde_json::Map<_, _> =
        hooks.iter().map(|(event, script)| ((*event).to_owned(), hook(script))).collect();
    fs::write(world.home.path().join("hooks.json"), json!({ "hooks": hooks }).to_string()).expect("a file");
    world
}

/// The completed runs of hooks, as event and status.
fn ran(world: &World) -> Vec<String> {
    let shown = |told: &Value| format!("{} {}", told["run"]["eventName"], told["run"]["status"]).replace('"', "");
    world.received.of("hook/completed").iter().map(shown).collect()
}

#[tokio::test]
async fn a_blocked_prompt_is_neither_published_nor_recorded() {
    let world = world(&[("UserPromptSubmit", "if grep -q secret; then echo no >&2; exit 2; fi")]).await;
    let id = world.start(false).await;
    assert_eq!(world.ask(id, "a secret").await, "completed");
    assert_eq!((world.model.calls().len(), world.received.of("item/started").len()), (0, 0));
    assert_eq!(world.stored(id).await, [("completed".into(), vec![])]);
    world.model.reply(message("yes"));
    assert_eq!(world.ask(id, "hello").await, "completed");
    assert_eq!(world.last_call().await, ["hello"]);
    assert_eq!(ran(&world), ["userPromptSubmit blocked", "userPromptSubmit completed"]);
}

#[tokio::test]
async fn steered_input_is_passed_to_the_hooks() {
    let world = world(&[("UserPromptSubmit", "if grep -q secret; then echo no >&2; exit 2; fi")]).await;
    let id = world.start(false).await;
    let gate = Gate::new();
    world.model.reply(message("one").after(&gate));
    let turn = world.say(id, "hello").await.expect("a turn");
    world.model.call(0).await;
    world.steer(id, &turn, "a secret").await.expect("it is running");
    gate.open();
    assert_eq!(world.ended(&turn).await, "completed");
    assert_eq!((world.model.calls().len(), world.last_call().await), (1, vec!["hello".into()]));
    let kinds = vec!["userMessage".into(), "agentMessage".into()];
    assert_eq!(world.stored(id).await, [("completed".into(), kinds)]);
}

#[tokio::test]
async fn a_stop_hook_continues_the_turn() {
    let script = "if grep -q 'stop_hook_active\":false'; then echo 'look <again>' >&2; exit 2; fi";
    let world = world(&[("Stop", script)]).await;
    let id = world.start(false).await;
    world.model.reply(message("one"));
    world.model.reply(message("two"));
    assert_eq!(world.ask(id, "hello").await, "completed");
    assert_eq!(ran(&world), ["stop blocked", "stop completed"]);
    let kinds = ["userMessage", "agentMessage", "hookPrompt", "agentMessage"].map(String::from).to_vec();
    assert_eq!(world.stored(id).await, [("completed".into(), kinds)]);
}

#[tokio::test]
async fn an_interrupt_kills_a_hook_and_starts_nothing_further() {
    for (event, commands) in [("SessionStart", 0), ("UserPromptSubmit", 0), ("PreToolUse", 0), ("PostToolUse", 1)] {
        let world = world(&[(event, "echo $$ > pid; sleep 60")]).await;
        let id = world.start(false).await;
        world.model.reply(shell("true"));
        let turn = world.say(id, "hello").await.expect("a turn");
        let pid = world.home.work().join("pid");
        let text = async || fs::read_to_string(&pid).unwrap_or_default();
        until("hook", async || text().await.ends_with('\n')).await;
        world.interrupt(id, &turn).await.expect("it is running");
        assert_eq!(world.ended(&turn).await, "interrupted");
        let started = world.received.of("item/started");
        let begun = started.iter().filter(|told| told["item"]["type"] == "commandExecution").count();
        assert_eq!((begun, world.received.of("hook/completed").len()), (commands, 1), "{event}");
        let stat = format!("/proc/{}/stat", text().await.trim());
        until("end of the hook", async || {
            let stat = fs::read_to_string(&stat).unwrap_or_default();
            stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
        })
        .await;
    }
}

#[tokio::test]
async fn an_invalid_hook_is_a_config_warning() {
    let world = world(&[("Stop", " ")]).await;
    let id = world.start(false).await;
    world.model.reply(message("one"));
    assert_eq!(world.ask(id, "hello").await, "completed");
    let told = world.received.of("configWarning");
    assert_eq!((told.len(), &told[0]["details"]), (1, &json!("Stop: the command is empty")));
}
