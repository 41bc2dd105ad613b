#![no_main]

#[path = "../src/websocket.rs"]
mod websocket;

libfuzzer_sys::fuzz_target!(|data: &[u8]| websocket::run(data));
