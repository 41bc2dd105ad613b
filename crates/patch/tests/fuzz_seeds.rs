//! The fuzz target of this crate on fixed seeds.

#[path = "../../../fuzz/src/patch.rs"]
mod patch;
#[path = "../../../fuzz/src/seeds.rs"]
mod seeds;

#[test]
fn mutated_seeds_do_not_panic() {
    seeds::survives("patch", patch::run);
}
