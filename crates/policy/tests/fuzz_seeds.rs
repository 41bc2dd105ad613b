//! The fuzz targets of this crate, as tests.

#[path = "../../../fuzz/src/rules.rs"]
mod rules;
#[path = "../../../fuzz/src/script.rs"]
mod script;
#[path = "../../../fuzz/src/seeds.rs"]
mod seeds;

#[test]
fn no_mutated_script_seed_panics() {
    seeds::survives("script", script::run);
}

#[test]
fn no_mutated_rules_seed_panics() {
    seeds::survives("rules", rules::run);
}
