#![no_main]

#[path = "../src/patch.rs"]
mod patch;

libfuzzer_sys::fuzz_target!(|data: &[u8]| patch::run(data));
