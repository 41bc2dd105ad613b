//! The fuzz target of this crate, as a test.

#[path = "../../../fuzz/src/script.rs"]
mod script;
#[path = "../../../fuzz/src/seeds.rs"]
mod seeds;

#[test]
fn every_seed_is_survived_changed_or_not() {
    seeds::survives("script", script::run);
}
