//! Compares the protocol that this crate generates with the recorded inventories of releases 0.118.0 and 0.166.0: every
//! method, field, type, optional and nullable mark and enum value. What differs from both is listed in
//! `inventory/additions.txt`, fact by fact.
//!
//! `cargo xtask inventory` records an inventory.

use std::collections::BTreeSet;

use loomd_protocol::schema::Surface;
use loomd_protocol::schema::inventory::{generated, parse};

const OLDER: &str = include_str!("../inventory/0.118.0.txt");
const NEWER: &str = include_str!("../inventory/0.166.0.txt");
const ADDITIONS: &str = include_str!("../inventory/additions.txt");

#[test]
fn the_stable_surface_is_that_of_the_recorded_releases() {
    check(Surface::Stable);
}

#[test]
fn the_experimental_surface_is_that_of_the_recorded_releases() {
    check(Surface::Experimental);
}

/// Everything of 0.118.0 is there, and nothing that is in neither release, but for the listed facts.
fn check(surface: Surface) {
    let mut expected = parse(OLDER, surface);
    let mut allowed = parse(NEWER, surface);
    // Types that only experimental methods use stay in the stable bundle, as in 0.118.0.
    let experimental = parse(NEWER, Surface::Experimental);
    let stable_types: BTreeSet<String> = allowed.iter().map(|fact| type_of(fact).to_owned()).collect();
    allowed.extend(experimental.into_iter().filter(|fact| !stable_types.contains(type_of(fact))));
    assert!(expected.len() > 1500 && allowed.len() > 3000, "the recorded inventories are not empty");
    let text: String = ADDITIONS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.to_owned() + "\n")
        .collect();
    for line in parse(&text, surface) {
        match line.split_at_checked(2) {
            Some(("+ ", fact)) => assert!(allowed.insert(fact.to_owned()), "{fact} is no addition"),
            Some(("- ", fact)) => assert!(expected.remove(fact), "{fact} was not there"),
            _ => panic!("additions.txt: {line}"),
        }
    }
    let generated = generated(surface);
    let missing: BTreeSet<_> = expected.difference(&generated).collect();
    let surplus: BTreeSet<_> =
        generated.iter().filter(|fact| !expected.contains(*fact) && !allowed.contains(*fact)).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "missing: {missing:#?}\nnot listed: {surplus:#?}");
}

/// The type that a fact is about.
fn type_of(fact: &str) -> &str {
    fact.split(['.', '(', ' ']).next().unwrap_or(fact)
}
