//! Ways out of a sandbox, each tried without one, where it must work, or the attempt would prove nothing; and in the
//! built-in sandbox and in bubblewrap, where it must not: with Landlock behind the mounts, and without, as on a kernel
//! that has none.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod attempts;
mod world;

use attempts::{ATTEMPTS, Attempt, Need, Policy};
use loomd_exec::sandbox::Sandbox;
use loomd_exec::{Limits, run};
use tokio_util::sync::CancellationToken;
use world::World;

/// The least number of attempts that must succeed without a sandbox.
const ENOUGH: usize = 60;

/// Loopback ports that nothing serves here: the attempts are to reach anything else.
const DOORS: &[u16] = &[3128, 8081];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    Nothing,
    BuiltIn,
    BuiltInWithoutLandlock,
    Bubblewrap,
    BubblewrapWithoutLandlock,
}

/// Whether an attempt escaped, and its output.
async fn escapes(attempt: &Attempt, means: Means) -> (bool, String) {
    let world = World::new(attempt.setup, attempt.policy);
    let before = world.snapshot();
    let mut said = String::new();
    for script in attempt.scripts {
        // Made for each script, as the server does: the first one may have changed what paths resolve to.
        let sandbox = world.sandbox(attempt.policy);
        let command = world.command(script);
        let helper = &world::fixture();
        let mut doors = None;
        let mut wrap = |sandbox: Sandbox| match attempt.policy {
            Policy::Doors => {
                let (command, opened) = sandbox.wrap_with_ports(&command, Some(helper), DOORS).unwrap();
                doors = Some(opened);
                command
            }
            _ => sandbox.wrap(&command, Some(helper)).unwrap(),
        };
        let command = match means {
            Means::Nothing => command.clone(),
            Means::BuiltIn => wrap(sandbox),
            Means::BuiltInWithoutLandlock => wrap(sandbox.without_landlock()),
            Means::Bubblewrap => wrap(sandbox.with_bubblewrap_only()),
            Means::BubblewrapWithoutLandlock => wrap(sandbox.with_bubblewrap_only().without_landlock()),
        };
        let done = run(&command, Limits::default(), &CancellationToken::new(), |_, _| {}).await.unwrap();
        said += &String::from_utf8_lossy(&done.aggregated());
        drop(doors);
    }
    let told = said.lines().any(|line| line == "escaped");
    (told || world.snapshot() != before || world.was_reached(), said)
}

/// Whether the sandbox must stop the attempt. Under bubblewrap nothing limits the processes of root.
fn is_promised(attempt: &Attempt, means: Means) -> bool {
    let bubblewrap = matches!(means, Means::Bubblewrap | Means::BubblewrapWithoutLandlock);
    !(bubblewrap && rustix::process::geteuid().is_root() && attempt.name == "more processes than allowed")
}

fn possible(attempt: &Attempt) -> bool {
    let root = rustix::process::geteuid().is_root();
    if attempt.need == Need::Root && !root {
        eprintln!("skipped: {}: only root could do it without a sandbox", attempt.name);
    }
    attempt.need != Need::Root || root
}

async fn all_fail(means: Means) {
    // A sandbox in which no command runs would pass all attempts.
    let policies = [Policy::Workspace, Policy::Closed, Policy::ClosedFile, Policy::Doors, Policy::HomeInside];
    for policy in policies.into_iter().chain([Policy::WorkspaceAndNetwork, Policy::Limited]) {
        let fine = Attempt { scripts: &["echo x > $W/new && echo escaped"], policy, ..ATTEMPTS[0] };
        let (_, said) = escapes(&fine, means).await;
        assert_eq!(said, "escaped\n", "what is allowed works in {means:?} with {policy:?}");
    }
    let mut escaped = Vec::new();
    for attempt in ATTEMPTS.iter().filter(|attempt| possible(attempt) && is_promised(attempt, means)) {
        let (out, said) = escapes(attempt, means).await;
        if out {
            escaped.push(format!("{}: {said}", attempt.name));
        }
    }
    assert!(escaped.is_empty(), "out of {means:?}: {escaped:#?}");
}

#[tokio::test]
async fn every_attempt_succeeds_without_a_sandbox() {
    let (mut shown, mut failed) = (0, Vec::new());
    for attempt in ATTEMPTS.iter().filter(|attempt| possible(attempt)) {
        let (out, said) = escapes(attempt, Means::Nothing).await;
        match attempt.need {
            _ if out => shown += 1,
            Need::Kernel => eprintln!("not to be shown here: {}: {said}", attempt.name),
            Need::Nothing | Need::Root => failed.push(format!("{}: {said}", attempt.name)),
        }
    }
    assert!(failed.is_empty(), "these prove nothing: {failed:#?}");
    assert!(shown >= ENOUGH, "only {shown} attempts could be shown to work without a sandbox");
}

#[tokio::test]
async fn every_attempt_fails_in_the_built_in_sandbox() {
    all_fail(Means::BuiltIn).await;
}

#[tokio::test]
async fn every_attempt_fails_in_the_built_in_sandbox_without_landlock() {
    all_fail(Means::BuiltInWithoutLandlock).await;
}

#[tokio::test]
async fn every_attempt_fails_in_bubblewrap() {
    if has_bubblewrap() {
        all_fail(Means::Bubblewrap).await;
    }
}

#[tokio::test]
async fn every_attempt_fails_in_bubblewrap_without_landlock() {
    if has_bubblewrap() {
        all_fail(Means::BubblewrapWithoutLandlock).await;
    }
}

fn has_bubblewrap() -> bool {
    let found = std::process::Command::new("bwrap").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: bubblewrap is not installed here");
    }
    found
}

#[test]
fn names_of_attempts_are_unique() {
    let names: std::collections::BTreeSet<_> = ATTEMPTS.iter().map(|attempt| attempt.name).collect();
    assert_eq!(names.len(), ATTEMPTS.len());
    assert!(names.len() >= ENOUGH);
}
