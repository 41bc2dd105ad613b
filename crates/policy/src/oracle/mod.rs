//! Compares the two readings of scripts with real shells, on generated lines. `LOOMD_ORACLE_LINES` sets the number of
//! lines.

mod exact;
mod expected;
mod generate;
mod heredocs;
mod shell;
mod strict;
mod vocabulary;

use crate::rules::{PrefixRule, RuleDecision, Rules};
use crate::suspects::suspects;

/// The default number of lines.
const LINES: usize = 20_000;
/// The number of lines that one shell runs.
const BATCH: usize = 2_000;

fn lines() -> usize {
    std::env::var("LOOMD_ORACLE_LINES").ok().and_then(|lines| lines.parse().ok()).unwrap_or(LINES)
}

/// Whether a rule against the command applies to an argument list.
fn is_seen(argv: &[String], command: &[String]) -> bool {
    let pattern = command.iter().take(4).map(|word| vec![word.clone()]).collect();
    let mut rules = Rules::default();
    rules.add(PrefixRule { pattern, decision: RuleDecision::Forbidden, justification: None });
    !rules.restricting(&suspects(argv)).is_empty()
}
