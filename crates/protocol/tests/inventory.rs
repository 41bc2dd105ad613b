//! Compares the protocol that this crate generates with the recorded inventory of release 0.118.0: every method, field,
//! type, optional and nullable mark and enum value. Differences are listed in `inventory/additions.txt`, fact by fact.
//!
//! `cargo xtask inventory` records the inventory.

use std::collections::BTreeSet;

use loomd_protocol::schema::Surface;
use loomd_protocol::schema::inventory::{generated, parse};

const RECORDED: &str = include_str!("../inventory/0.118.0.txt");
const ADDITIONS: &str = include_str!("../inventory/additions.txt");

#[test]
fn the_stable_surface_equals_the_recorded_release() {
    check(Surface::Stable);
}

#[test]
fn the_experimental_surface_equals_the_recorded_release() {
    check(Surface::Experimental);
}

fn check(surface: Surface) {
    let mut expected = parse(RECORDED, surface);
    assert!(expected.len() > 1500, "the recorded inventory is not empty");
    let text: String = ADDITIONS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.to_owned() + "\n")
        .collect();
    for line in parse(&text, surface) {
        match line.split_at_checked(2) {
            Some(("+ ", fact)) => assert!(expected.insert(fact.to_owned()), "{fact} is no addition"),
            Some(("- ", fact)) => assert!(expected.remove(fact), "{fact} was not there"),
            _ => panic!("additions.txt: {line}"),
        }
    }
    let generated = generated(surface);
    let missing: BTreeSet<_> = expected.difference(&generated).collect();
    let surplus: BTreeSet<_> = generated.difference(&expected).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "missing: {missing:#?}\nnot listed: {surplus:#?}");
}
