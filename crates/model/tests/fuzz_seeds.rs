//! The fuzz target of this crate, as a test.

#[path = "../../../fuzz/src/seeds.rs"]
mod seeds;
#[path = "../../../fuzz/src/sse.rs"]
mod sse;

#[test]
fn seeds_and_mutated_seeds_do_not_panic() {
    seeds::survives("sse", sse::run);
}
