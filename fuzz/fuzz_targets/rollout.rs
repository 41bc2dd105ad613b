#![no_main]

#[path = "../src/rollout.rs"]
mod rollout;

libfuzzer_sys::fuzz_target!(|data: &[u8]| rollout::run(data));
