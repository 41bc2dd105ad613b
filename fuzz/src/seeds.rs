//! Runs a fuzz target as an ordinary test: on its seeds, and on what they become when a few bytes change.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Panics when the target does.
pub fn survives(target: &str, run: fn(&[u8])) {
    let folder = format!("{}/../../fuzz/seeds/{target}", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(folder).expect("a folder of seeds");
    let seeds: Vec<_> = files.map(|file| std::fs::read(file.expect("a seed").path()).expect("a seed")).collect();
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8);
    let cases = (prop::sample::select(seeds), changes, any::<prop::sample::Index>());
    let done = TestRunner::new(Config::with_cases(2000)).run(&cases, |(mut data, changes, cut)| {
        for (at, byte) in changes {
            if !data.is_empty() {
                let at = at.index(data.len());
                data[at] = byte;
            }
        }
        run(&data);
        data.truncate(cut.index(data.len() + 1));
        run(&data);
        Ok(())
    });
    done.expect("no input is too odd");
}
