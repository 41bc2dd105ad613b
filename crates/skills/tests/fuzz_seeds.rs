//! The fuzz target of this crate, as a test.

#[path = "../../../fuzz/src/seeds.rs"]
mod seeds;
#[path = "../../../fuzz/src/skill.rs"]
mod skill;

#[test]
fn no_mutated_skill_seed_panics() {
    seeds::survives("skill", skill::run);
}
