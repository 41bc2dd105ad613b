//! The protocol under delays, partitions, pauses and crashes, with its invariants checked after every step.
//!
//! `LOOMD_SEEDS=100000` runs so many seeds, `LOOMD_SEED=7` only that one, and prints its steps.

#![allow(clippy::unwrap_used, reason = "a test that fails may stop")]

mod checks;
mod clients;
mod database;
mod executor;
mod faults;
mod machine;
mod network;
mod random;
mod routes;
mod slot;
mod takeover;
mod traffic;
mod world;

use world::World;

/// Seeds that a run of the tests takes.
const SEEDS: u64 = 2_000;

/// Seeds that have found a mistake once.
const REGRESSIONS: [u64; 0] = [];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn check(seed: u64, trace: bool) -> u64 {
    let mut world = World::new(seed, trace);
    if let Err(error) = world.run() {
        panic!("{error}\nLOOMD_SEED={seed} runs it again");
    }
    world.steps
}

#[test]
fn no_seed_breaks_an_invariant_or_leaves_a_request_undone() {
    let steps: u64 = match number("LOOMD_SEED") {
        Some(seed) => check(seed, true),
        None => {
            let random = 0..number("LOOMD_SEEDS").unwrap_or(SEEDS);
            REGRESSIONS.into_iter().chain(random).map(|seed| check(seed, false)).sum()
        }
    };
    println!("{steps} steps");
    assert!(steps > 100, "the simulation does something");
}
