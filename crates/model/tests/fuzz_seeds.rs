//! The fuzz target of this crate, as a test.

#[path = "../../../fuzz/src/seeds.rs"]
mod seeds;
#[path = "../../../fuzz/src/sse.rs"]
mod sse;

#[test]
fn every_seed_is_survived_changed_or_not() {
    seeds::survives("sse", sse::run);
}
