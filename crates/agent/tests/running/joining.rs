//! A client that joins a thread while its turn streams.

use loomd_agent::{Opened, Source, Subscriber};
use loomd_protocol::{Thread, ThreadItem};
use loomd_store::ThreadId;
use loomd_testkit::Gate;
use loomd_testkit::model::{added, done, function_call, message, text_delta};
use serde_json::json;

use crate::world::{World, answered};

const SOMEBODY_ELSE: Subscriber = Subscriber(2);

async fn join(world: &World, id: ThreadId) -> Thread {
    let opened: Result<Opened, _> = answered(async |reply| {
        world.threads.resume(Source::Id(id), true, world.resolve(), SOMEBODY_ELSE, reply).await;
    })
    .await;
    opened.expect("a thread").thread
}

#[tokio::test]
async fn a_client_that_joins_gets_a_streaming_message_with_its_text_so_far() {
    let world = World::new().await;
    let id = world.start(false).await;
    world.ask(id, "first").await;
    let gate = Gate::new();
    let item = |content| json!({ "type": "message", "role": "assistant", "id": "msg_a", "content": content });
    let whole = json!([{ "type": "output_text", "text": "one two three" }]);
    let rest = text_delta("three").then(done(item(whole)));
    world.model.reply(added(item(json!([]))).then(text_delta("one ")).then(text_delta("two ")).wait(&gate).then(rest));
    let turn = world.say(id, "second").await.expect("a turn");
    world.received.find("item/agentMessage/delta", |delta| delta["delta"] == "two ").await;
    let thread = join(&world, id).await;
    let shown = thread.turns.last().and_then(|turn| turn.items.last()).expect("an item").clone();
    assert!(
        matches!(&shown, ThreadItem::AgentMessage { id, text, .. } if id == "msg_a" && text == "one two "),
        "{shown:?}"
    );
    gate.open();
    world.ended(&turn).await;
    let deltas = world.received.of("item/agentMessage/delta");
    let later: Vec<_> = deltas.iter().skip_while(|delta| delta["delta"] != "two ").skip(1).collect();
    assert_eq!(later.len(), 1, "{later:?}");
    assert_eq!(later[0]["delta"], "three");
}

#[tokio::test]
async fn a_client_that_joins_gets_a_running_command_with_its_output_so_far() {
    let world = World::new().await;
    let id = world.start(false).await;
    let fifo = world.home.work().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let arguments = json!({ "command": "echo printed; read x < fifo; echo more", "login": false });
    world.model.reply(function_call("shell_command", arguments, "call_1")).reply(message("done"));
    let turn = world.say(id, "run it").await.expect("a turn");
    world.received.find("item/commandExecution/outputDelta", |delta| delta["delta"] == "printed\n").await;
    let thread = join(&world, id).await;
    let shown = thread.turns.last().and_then(|turn| turn.items.last()).expect("an item").clone();
    let ThreadItem::CommandExecution { aggregated_output, .. } = &shown else { panic!("{shown:?}") };
    assert_eq!(aggregated_output.as_deref(), Some("printed\n"));
    tokio::task::spawn_blocking(move || std::fs::write(fifo, "go\n")).await.expect("a task").expect("a pipe");
    world.ended(&turn).await;
}
