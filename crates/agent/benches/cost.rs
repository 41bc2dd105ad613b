//! What a turn costs, in time and allocations: a plain one and one that streams deltas, without budgets, with one that is
//! compared in memory, and with one that reads the ledger. The event log and the ledger are part of all of them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that fails may stop")]
#![allow(dead_code, reason = "shared with the tests")]

use divan::{AllocProfiler, Bencher};
use loomd_testkit::model::{Reply, Usage, completed, message, streamed};
use tokio::runtime::{Builder, Runtime};

#[path = "../tests/running/faulty.rs"]
mod faulty;
#[path = "../tests/running/world.rs"]
mod world;

use world::World;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const DELTAS: usize = 1000;

/// The configuration of some budgets, none of which is used up.
fn config(budgets: &str) -> &'static str {
    match budgets {
        "turn" => "[loomd.budgets.turn]\ntokens = 1_000_000_000\ntool_calls = 1_000_000",
        "day" => "[loomd.budgets.day]\ntokens = 1_000_000_000_000",
        _ => "",
    }
}

fn main() {
    divan::main();
}

fn used() -> Reply {
    completed(Usage { input: 1000, cached: 100, output: 50, reasoning: 5 })
}

/// Runs turns of one thread, each with this reply of the model.
fn turns(bencher: Bencher<'_, '_>, config: &str, reply: impl Fn() -> Reply) {
    let runtime: Runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (world, id) = runtime.block_on(async {
        let world = World::with(config).await;
        let id = world.start(true).await;
        (world, id)
    });
    bencher.bench_local(|| {
        runtime.block_on(async {
            world.model.reply(reply());
            assert_eq!(world.ask(id, "go on").await, "completed");
        });
    });
}

#[divan::bench(args = ["none", "turn", "day"])]
fn plain_turn(bencher: Bencher<'_, '_>, budgets: &str) {
    turns(bencher, config(budgets), || message("done").then(used()));
}

#[divan::bench(args = ["none", "turn", "day"])]
fn streamed_deltas(bencher: Bencher<'_, '_>, budgets: &str) {
    let pieces = vec!["piece "; DELTAS];
    turns(bencher, config(budgets), || streamed(&pieces).then(used()));
}
