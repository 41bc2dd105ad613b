//! The fuzz target of this crate, as a test.

#[path = "../../../fuzz/src/patch.rs"]
mod patch;
#[path = "../../../fuzz/src/seeds.rs"]
mod seeds;

#[test]
fn every_seed_is_survived_changed_or_not() {
    seeds::survives("patch", patch::run);
}
