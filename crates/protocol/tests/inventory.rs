//! Compares the protocol that this crate generates with the recorded inventories of releases 0.118.0 and 0.166.0: every
//! method, field, type, optional and nullable mark and enum value. What differs from both is listed in
//! `inventory/additions.txt`, what of 0.166.0 is missing in `inventory/absent.txt`, fact by fact.
//!
//! `cargo xtask inventory` records an inventory.

use std::collections::BTreeSet;

use loomd_protocol::schema::inventory::{self, generated, parse};
use loomd_protocol::schema::{Definitions, Format, Surface};

const OLDER: &str = include_str!("../inventory/0.118.0.txt");
const NEWER: &str = include_str!("../inventory/0.166.0.txt");
const ABSENT: &str = include_str!("../inventory/absent.txt");
const ADDITIONS: &str = include_str!("../inventory/additions.txt");

#[test]
fn the_stable_surface_is_that_of_the_recorded_releases() {
    check(Surface::Stable);
}

#[test]
fn the_experimental_surface_is_that_of_the_recorded_releases() {
    check(Surface::Experimental);
}

/// Without what is in 0.166.0 only, everything of 0.118.0 is still there.
#[test]
fn the_description_of_an_older_release_has_nothing_of_the_newer_one() {
    let [older, newer] = [OLDER, NEWER].map(|release| parse(release, Surface::Experimental));
    let all = Definitions::collect(Surface::Experimental, Format::JsonSchema);
    let of_both = inventory::of(&all);
    let of_older = inventory::of(&all.of_release(&older, &newer));
    let lost: BTreeSet<_> = of_both.intersection(&older).filter(|fact| !of_older.contains(*fact)).collect();
    assert!(lost.is_empty(), "lost: {lost:#?}");
    let subject = |fact: &str| fact.split([':', '?']).next().unwrap_or(fact).to_owned();
    let known: BTreeSet<_> = older.iter().map(|fact| subject(fact)).collect();
    let left: BTreeSet<_> = of_older
        .intersection(&newer)
        .filter(|fact| !older.contains(*fact) && !known.contains(&subject(fact)))
        .collect();
    assert!(left.is_empty(), "of the newer release: {left:#?}");
}

/// Of methods that are not built, of vendors' services, or described less exactly.
#[test]
fn what_of_the_newer_release_is_not_described_is_listed() {
    let generated = generated(Surface::Experimental);
    let absent: BTreeSet<_> =
        parse(NEWER, Surface::Experimental).into_iter().filter(|fact| !generated.contains(fact)).collect();
    let listed: BTreeSet<String> = ABSENT.lines().map(str::to_owned).collect();
    let (more, fewer): (Vec<_>, Vec<_>) = (absent.difference(&listed).collect(), listed.difference(&absent).collect());
    assert!(more.is_empty() && fewer.is_empty(), "add to absent.txt: {more:#?}\nremove from it: {fewer:#?}");
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
