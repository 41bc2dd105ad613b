//! The matcher's score for the common case, a few ASCII letters and an ASCII path, without its overhead: half a
//! million paths between two keystrokes. It equals the matcher's score exactly; a test compares them.
//!
//! A path is scanned once. For each typed letter the scorer tracks the best score with the letter on the current
//! character (`here`), and the best score with the letter somewhere before (`before`). Only characters that were
//! typed are considered; those between them are gaps.

use nucleo_matcher::Utf32Str;
use nucleo_matcher::pattern::{AtomKind, Pattern};

use crate::index::{NOT_PLAIN, PathRef};

/// More letters, or longer paths, are left to the matcher.
const MAX_LETTERS: usize = 24;
const MAX_PATH: usize = 512;

const MATCH: u32 = 16;
const GAP_START: u32 = 3;
const GAP_MORE: u32 = 1;
/// Bonus of a match at the beginning of a word, of a path component, of a camel-case hump or number, and directly
/// after another match.
const WORD: u32 = 8;
const PART: u32 = 9;
const HUMP: u32 = 5;
const BEHIND: u32 = 4;

/// A query that can be scored here.
#[derive(Clone, Debug)]
pub(crate) struct Scorer {
    letters: Vec<u8>,
    /// Whether upper case counts as lower case.
    fold: bool,
    wanted: [bool; 256],
}

/// The state of one letter.
#[derive(Clone, Copy, Default)]
struct Row {
    /// 0 if the letter is not on the current character.
    here: u32,
    /// The bonus of the first match of the current run.
    run: u32,
    before: u32,
}

impl Scorer {
    /// `None` unless the query is a few ASCII letters. For a single letter the matcher is as fast.
    pub fn new(pattern: &Pattern) -> Option<Self> {
        let [atom] = pattern.atoms.as_slice() else { return None };
        let Utf32Str::Ascii(letters) = atom.needle_text() else { return None };
        let is_plain = atom.kind == AtomKind::Fuzzy && !atom.negative && (2..=MAX_LETTERS).contains(&letters.len());
        is_plain.then_some(())?;
        let fold = !letters.iter().any(u8::is_ascii_uppercase);
        let mut wanted = [false; 256];
        for letter in letters {
            wanted[usize::from(*letter)] = true;
            if fold {
                wanted[usize::from(letter.to_ascii_uppercase())] = true;
            }
        }
        Some(Self { letters: letters.to_vec(), fold, wanted })
    }

    /// Whether [`score`](Self::score) can score this path.
    pub fn takes(path: PathRef<'_>) -> bool {
        path.text.len() <= MAX_PATH && path.letters != NOT_PLAIN
    }

    /// `None` if the letters do not occur in this order.
    pub fn score(&self, path: &str) -> Option<u32> {
        let path = path.as_bytes();
        let mut rows = [Row::default(); MAX_LETTERS];
        // Number of letters that have occurred in order so far.
        let mut reached = 0;
        let mut next = 0;
        let mut best = 0;
        for (at, byte) in path.iter().enumerate() {
            if !self.wanted[usize::from(*byte)] {
                continue;
            }
            let gap = (at - next) as u32;
            next = at + 1;
            let letter = if self.fold { byte.to_ascii_lowercase() } else { *byte };
            let bonus = bonus(at.checked_sub(1).map(|before| path[before]), *byte);
            if gap > 0 {
                rows[..reached].iter_mut().for_each(|row| row.skip(gap));
            }
            if self.letters.get(reached) == Some(&letter) {
                reached += 1;
            }
            for number in (0..reached).rev() {
                let before = rows[number].before_next();
                rows[number] = match (self.letters[number] == letter, number) {
                    (false, _) => Row { before, ..Row::default() },
                    (true, 0) => Row { here: MATCH + 2 * bonus, run: bonus, before },
                    (true, _) => rows[number - 1].followed_by(bonus, before),
                };
            }
            if reached == self.letters.len() {
                best = best.max(rows[reached - 1].here);
            }
        }
        (reached == self.letters.len()).then_some(best)
    }
}

impl Row {
    /// The best score up to before the next character.
    fn before_next(self) -> u32 {
        self.here.saturating_sub(GAP_START).max(self.before.saturating_sub(GAP_MORE))
    }

    fn skip(&mut self, characters: u32) {
        let before = self.before_next().saturating_sub((characters - 1) * GAP_MORE);
        *self = Self { here: 0, run: 0, before };
    }

    /// The next letter is on the next character, which has this bonus of its own.
    fn followed_by(self, bonus: u32, before: u32) -> Self {
        let apart = self.before + bonus;
        if self.here > 0 {
            let mut run = self.run.max(BEHIND);
            if bonus >= WORD {
                run = run.max(bonus);
            }
            let together = self.here + run.max(bonus);
            if together > apart {
                return Self { here: together + MATCH, run, before };
            }
        }
        Self { here: apart + MATCH, run: bonus, before }
    }
}

/// The bonus of a match at this character, given the character before it.
fn bonus(before: Option<u8>, byte: u8) -> u32 {
    use Class::*;
    let class = Class::of(byte);
    // The beginning of the path is the beginning of a component.
    match (before.map_or(Part, Class::of), class) {
        (Part, Lower | Upper | Number) => PART,
        (Space | Sign, Lower | Upper | Number) => WORD,
        (Lower, Upper) => HUMP,
        (Lower | Upper, Number) => HUMP,
        (_, Space | Sign) => WORD,
        _ => 0,
    }
}

#[derive(Clone, Copy)]
enum Class {
    Space,
    Sign,
    Part,
    Lower,
    Upper,
    Number,
}

impl Class {
    fn of(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' => Self::Lower,
            b'A'..=b'Z' => Self::Upper,
            b'0'..=b'9' => Self::Number,
            b'/' => Self::Part,
            byte if byte.is_ascii_whitespace() => Self::Space,
            _ => Self::Sign,
        }
    }
}

#[cfg(test)]
mod tests {
    use nucleo_matcher::pattern::{CaseMatching, Normalization};
    use nucleo_matcher::{Config, Matcher};
    use proptest::prelude::*;

    use super::*;

    fn check(query: &str, path: &str) -> Result<(), TestCaseError> {
        let pattern = Pattern::parse(query, CaseMatching::Smart, Normalization::Smart);
        let Some(scorer) = Scorer::new(&pattern) else { return Ok(()) };
        let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
        let expected = pattern.score(Utf32Str::Ascii(path.as_bytes()), &mut matcher);
        prop_assert_eq!(scorer.score(path), expected, "{:?} in {:?}", query, path);
        Ok(())
    }

    #[test]
    fn queries_with_operators_are_left_to_the_matcher() {
        for query in ["", "a", "a b", "!a", "^a", "a$", "'a", "ü", "abcdefghijklmnopqrstuvwxyz"] {
            assert!(
                Scorer::new(&Pattern::parse(query, CaseMatching::Smart, Normalization::Smart)).is_none(),
                "{query}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn scores_equal_the_matchers(query in "[abAB1_/.]{1,6}", path in "[abAB1_/. -]{1,24}") {
            check(&query, &path)?;
        }

        #[test]
        fn scores_equal_the_matchers_for_long_gaps(query in "[ab]{1,4}", path in "[abx]{0,3}x{0,40}[abx/]{0,8}x{0,40}[abx_]{0,8}") {
            check(&query, &path)?;
        }
    }
}
