#![no_main]

#[path = "../../crates/store/tests/fuzz/rollout.rs"]
mod rollout;

libfuzzer_sys::fuzz_target!(|data: &[u8]| rollout::run(data));
