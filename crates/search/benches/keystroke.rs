//! The time of a keystroke in a tree of half a million files.
//!
//! `cargo bench -p loomd-search --bench keystroke`

use std::time::{Duration, Instant};

use loomd_search::bench::Keystrokes;

const FILES: usize = 500_000;

fn main() {
    let words = [
        "alpha", "beta", "gamma", "delta", "core", "server", "thread", "turn", "item", "proto", "client", "model",
        "store", "index", "render", "Widget", "test", "utils", "main", "config",
    ];
    let mut seed = 1u64;
    let mut word = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        words[(seed >> 33) as usize % words.len()]
    };
    let paths = (0..FILES)
        .map(|number| format!("{}/{}/{}{}/{}_{}_{number}.rs", word(), word(), word(), number % 40, word(), word()));
    let keystrokes = Keystrokes::new(paths);
    // The first search loads the paths into memory.
    keystrokes.search("xyzzy");
    let mut times = Vec::new();
    for text in ["servthritem42", "config", "Widget render", "rs", "xyzzy", "core/turn", "tst_utl", "main !test", "a 9"]
    {
        for end in 1..=text.len() {
            for _ in 0..3 {
                let start = Instant::now();
                let found = keystrokes.search(&text[..end]);
                times.push((start.elapsed(), text[..end].to_owned(), found));
            }
        }
    }
    times.sort();
    let at = |share: f64| &times[((times.len() - 1) as f64 * share) as usize];
    let show = |name: &str, (time, text, found): &(Duration, String, usize)| {
        println!("{name:>4} {:>8.2} ms  {text:?} ({found} found)", time.as_secs_f64() * 1e3);
    };
    show("p50", at(0.5));
    show("p90", at(0.9));
    show("p99", at(0.99));
    show("max", at(1.0));
    for slow in times.iter().rev().step_by(3).take(12) {
        show("", slow);
    }
}
