//! Costs that could grow with a thread: pages, the next turn, and joining while a turn streams, for threads of 10 to
//! 20,000 turns that are compacted every 100 turns. For comparison, reading the whole rollout is measured, too.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that fails may stop")]
#![allow(dead_code, reason = "shared with the tests")]

use std::time::Instant;

use loomd_agent::{Opened, PageRequest, Source, Subscriber};
use loomd_protocol::{SortDirection, TurnItemsView};
use loomd_store::ThreadId;
use loomd_testkit::Gate;
use loomd_testkit::model::message;
use serde_json::{Value, json};

#[path = "../tests/running/faulty.rs"]
mod faulty;
#[path = "../tests/running/world.rs"]
mod world;

use world::{ME, World, answered};

const TURNS: [usize; 4] = [10, 1_000, 5_000, 20_000];
const ROUNDS: usize = 30;
/// The rounds of measurements that read the whole rollout.
const WHOLE_ROUNDS: usize = 3;
const SUMMARY_EVERY: usize = 100;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("medians in ms; the first page reads the rollout once");
    println!("  turns     whole  first pg      page  mid page  1st turn next turn      join join+page");
    for turns in TURNS {
        runtime.block_on(measure(turns));
    }
}

async fn measure(turns: usize) {
    let world = World::new().await;
    let id = write(&world, turns);
    let whole = median_of(WHOLE_ROUNDS, async || _ = world.threads.read(id, true, "").await.expect("a thread")).await;
    let newest = || PageRequest { cursor: None, limit: Some(25), direction: SortDirection::Desc };
    let begun = Instant::now();
    let page =
        async |request: &PageRequest| world.threads.turns_page(id, request, TurnItemsView::Full).await.expect("a page");
    page(&newest()).await;
    let first_page = ms(begun);
    let newest_page = median(async || _ = page(&newest()).await).await;
    let cursor = json!({ "turnId": format!("t{}", turns / 2), "includeAnchor": true }).to_string();
    let middle = PageRequest { cursor: Some(cursor), limit: Some(25), direction: SortDirection::Asc };
    let middle_page = median(async || _ = page(&middle).await).await;
    resume(&world, id, ME).await;
    let begun = Instant::now();
    world.ask(id, "and now?").await;
    let first_turn = ms(begun);
    let next_turn = median(async || _ = world.ask(id, "go on").await).await;
    let gate = Gate::new();
    world.model.reply(message("at last").after(&gate));
    let turn = world.say(id, "wait").await.expect("a turn");
    let join = median(async || _ = resume(&world, id, Subscriber(2)).await).await;
    let joined_page = median(async || {
        resume(&world, id, Subscriber(3)).await;
        page(&newest()).await;
    })
    .await;
    gate.open();
    world.ended(&turn).await;
    println!(
        "{turns:7} {whole:9.2} {first_page:9.2} {newest_page:9.2} {middle_page:9.2} {first_turn:9.2} {next_turn:9.2} {join:9.2} {joined_page:9.2}"
    );
}

async fn resume(world: &World, id: ThreadId, subscriber: Subscriber) -> Opened {
    answered(async |reply| {
        world.threads.resume(Source::Id(id), false, world.resolve(), subscriber, reply).await;
    })
    .await
    .expect("a thread")
}

async fn median(work: impl AsyncFn()) -> f64 {
    median_of(ROUNDS, work).await
}

async fn median_of(rounds: usize, work: impl AsyncFn()) -> f64 {
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let begun = Instant::now();
        work().await;
        times.push(ms(begun));
    }
    times.sort_by(f64::total_cmp);
    times[rounds / 2]
}

fn ms(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

/// A stored thread of so many turns.
fn write(world: &World, turns: usize) -> ThreadId {
    let id = ThreadId::new();
    let line = |kind: &str, payload: Value| {
        format!("{}\n", json!({ "timestamp": "2026-02-01T00:00:00.000Z", "type": kind, "payload": payload }))
    };
    let said = |role: &str, text: &str| {
        let kind = if role == "user" { "input_text" } else { "output_text" };
        json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
    };
    let mut file = line(
        "session_meta",
        json!({
            "id": id, "timestamp": "2026-02-01T00:00:00.000Z", "cwd": world.home.work(), "originator": "bench",
            "cli_version": "0.118.0", "source": "vscode", "model_provider": "mock",
        }),
    );
    for turn in 0..turns {
        let text = format!("{} {turn}", "lorem ipsum ".repeat(20));
        let turn_id = format!("t{turn}");
        file +=
            &line("event_msg", json!({ "type": "task_started", "turn_id": turn_id, "model_context_window": 100_000 }));
        if turn % SUMMARY_EVERY == SUMMARY_EVERY - 1 {
            let kept = [said("user", "the summary")];
            file += &line("compacted", json!({ "message": "the summary", "replacement_history": kept }));
        }
        file += &line(
            "turn_context",
            json!({
                "cwd": world.home.work(), "approval_policy": "never", "sandbox_policy": { "type": "danger-full-access" },
                "model": "scripted-model", "summary": "auto",
            }),
        );
        file += &line("response_item", said("user", &text));
        file += &line("event_msg", json!({ "type": "user_message", "message": text, "item_id": format!("u{turn}") }));
        file += &line("event_msg", json!({ "type": "agent_message", "message": text, "item_id": format!("a{turn}") }));
        file += &line("response_item", said("assistant", &text));
        let tokens = json!({
            "input_tokens": 9, "cached_input_tokens": 0, "output_tokens": 9, "reasoning_output_tokens": 0,
            "total_tokens": 18,
        });
        let info = json!({ "total_token_usage": tokens, "last_token_usage": tokens, "model_context_window": 100_000 });
        file += &line("event_msg", json!({ "type": "token_count", "info": info }));
        file += &line("event_msg", json!({ "type": "task_complete", "turn_id": turn_id, "last_agent_message": "x" }));
    }
    let day = world.home.path().join("sessions/2026/02/01");
    std::fs::create_dir_all(&day).unwrap();
    std::fs::write(day.join(format!("rollout-2026-02-01T00-00-00-{id}.jsonl")), file).unwrap();
    id
}
