//! The fuzz targets of this crate, as tests.

#[path = "../../../fuzz/src/rules.rs"]
mod rules;
#[path = "../../../fuzz/src/script.rs"]
mod script;
#[path = "../../../fuzz/src/seeds.rs"]
mod seeds;

#[test]
fn every_script_is_survived_changed_or_not() {
    seeds::survives("script", script::run);
}

#[test]
fn every_rules_file_is_survived_changed_or_not() {
    seeds::survives("rules", rules::run);
}
