//! The fuzz target for the websocket path, run on its seeds.

#[path = "../../../fuzz/src/websocket.rs"]
mod websocket;

#[test]
fn every_seed_is_survived() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/websocket");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        websocket::run(&std::fs::read(file.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 10, "the seeds are there");
}
