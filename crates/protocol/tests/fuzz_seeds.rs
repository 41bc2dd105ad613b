//! The fuzz target for messages, run on its seeds and on mutations of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

#[path = "../../../fuzz/src/message.rs"]
mod message;

use proptest::prelude::*;

fn seeds() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/message");
    let seeds: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
    assert!(!seeds.is_empty());
    seeds
}

#[test]
fn seeds_do_not_panic() {
    seeds().iter().for_each(|seed| message::run(seed));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutated_seeds_do_not_panic(
        mut data in prop::sample::select(seeds()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        for (at, byte) in changes {
            if !data.is_empty() {
                let at = at.index(data.len());
                data[at] = byte;
            }
        }
        message::run(&data);
        data.truncate(cut.index(data.len() + 1));
        message::run(&data);
    }
}
