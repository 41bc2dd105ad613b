#![no_main]

#[path = "../src/message.rs"]
mod message;

libfuzzer_sys::fuzz_target!(|data: &[u8]| message::run(data));
