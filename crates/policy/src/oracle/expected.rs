//! The commands that a line is expected to run by the exact reading, compared with those that a shell ran.

use super::shell::ShellFamily;
use crate::Script;
use crate::script::{ListOperator, SimpleCommand, plain};
use crate::word::Word;

/// The commands that a shell is expected to run.
pub(super) enum Expected {
    Plain(Vec<SimpleCommand>),
    Heredoc(Vec<Word>),
}

impl Expected {
    pub(super) fn of(line: &str) -> Option<Self> {
        if let Some(commands) = plain(line) {
            return Some(Self::Plain(commands));
        }
        match Script::parse(line) {
            Script::Heredoc(heredoc) => Some(Self::Heredoc(heredoc.words)),
            _ => None,
        }
    }

    /// The commands that run when every command ends with this status.
    pub(super) fn run(&self, status: u8) -> Vec<&[Word]> {
        let runs = |operator: ListOperator| match operator {
            ListOperator::Then | ListOperator::Pipe => true,
            ListOperator::And => status == 0,
            ListOperator::Or => status != 0,
        };
        match self {
            Self::Heredoc(words) => vec![words],
            Self::Plain(commands) => {
                let mut found: Vec<&[Word]> = Vec::new();
                let mut last = true;
                for SimpleCommand { operator, words } in commands {
                    // A pipe belongs to the command before it, run or not.
                    last = if *operator == ListOperator::Pipe { last } else { runs(*operator) };
                    found.extend(last.then_some(&words[..]));
                }
                found
            }
        }
    }
}

/// Whether a command that ran matches the expected one: words that do not expand and braces exactly, globs and the like
/// as any number of words.
fn agrees(family: ShellFamily, words: &[Word], ran: &[String]) -> bool {
    let expanded: Vec<Option<Word>> = words
        .iter()
        .flat_map(|word| match (family, word.braces()) {
            (_, _) if !word.expands() => vec![Some(word.clone())],
            (ShellFamily::Bash, Some(words)) => words.into_iter().map(Some).collect(),
            (ShellFamily::Bash, None) | (ShellFamily::Posix, _) => vec![None],
        })
        .collect();
    fits(&expanded, ran)
}

/// Commands of a pipe run at the same time, in any order.
pub(super) fn all_agree(family: ShellFamily, expected: &[&[Word]], ran: &[Vec<String>]) -> bool {
    let Some((first, rest)) = expected.split_first() else { return ran.is_empty() };
    (0..ran.len()).any(|at| {
        let mut left = ran.to_vec();
        agrees(family, first, &left.remove(at)) && all_agree(family, rest, &left)
    })
}

fn fits(expected: &[Option<Word>], ran: &[String]) -> bool {
    match expected.split_first() {
        None => ran.is_empty(),
        Some((Some(word), rest)) if !word.has_globs() => {
            ran.split_first().is_some_and(|(first, ran)| *first == word.text() && fits(rest, ran))
        }
        Some((_, rest)) => (0..=ran.len()).any(|taken| fits(rest, &ran[taken..])),
    }
}
