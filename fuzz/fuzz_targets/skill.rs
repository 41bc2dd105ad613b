#![no_main]

#[path = "../src/skill.rs"]
mod skill;

libfuzzer_sys::fuzz_target!(|data: &[u8]| skill::run(data));
