//! [`Query`]: matches and scores paths. The letters must occur in order; closer together and at the beginning of
//! words scores higher.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use crate::MAX_RESULTS;
use crate::index::{PathRef, Paths, letters};
use crate::scorer::Scorer;
use crate::threads;

/// Fewer paths than this are searched faster by one thread.
const WORTH_A_THREAD: usize = 16 * 1024;

/// Number of paths between two checks for cancellation.
const CANCEL_CHECK: usize = 1024;

/// The matcher's highest score per letter, and the bonus for the first letter of a word.
const BEST_LETTER: u32 = 25;
const BEST_START: u32 = 9;

/// A parsed query.
#[derive(Clone, Debug)]
pub struct Query {
    pattern: Pattern,
    /// Used in place of the pattern where possible.
    scorer: Option<Scorer>,
    /// Letters that every match has.
    letters: u64,
    /// The highest possible score.
    best: u32,
}

/// A match: its position in the index, and its score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    pub at: usize,
    pub score: u32,
}

impl Query {
    /// Words must all match. `!x` excludes, `'x` is literal, `^x` and `x$` are anchors. With an upper-case letter the
    /// case matters.
    pub fn new(text: &str) -> Self {
        let pattern = Pattern::parse(text, CaseMatching::Smart, Normalization::Smart);
        let wanted = || pattern.atoms.iter().filter(|atom| !atom.negative).map(|atom| atom.needle_text());
        let required = wanted().flat_map(|needle| needle.chars().collect::<Vec<_>>()).filter(char::is_ascii);
        let letters = letters(&required.collect::<String>());
        let best = wanted().map(|needle| BEST_LETTER * needle.len() as u32 + BEST_START).sum();
        Self { scorer: Scorer::new(&pattern), pattern, letters, best }
    }

    /// The best matches, best first and then by path. Incomplete if `cancelled` is set.
    pub(crate) fn best_of(&self, paths: &Paths, without: &[Range<usize>], cancelled: &AtomicBool) -> Vec<Match> {
        let parts = (paths.len() / WORTH_A_THREAD).clamp(1, threads());
        let size = paths.len().div_ceil(parts).max(1);
        let part = |number: usize| number * size..paths.len().min((number + 1) * size);
        let mut matches = if parts == 1 {
            self.best_in(paths, 0..paths.len(), without, cancelled)
        } else {
            std::thread::scope(|scope| {
                let others: Vec<_> = (1..parts)
                    .map(|number| scope.spawn(move || self.best_in(paths, part(number), without, cancelled)))
                    .collect();
                let mut matches = self.best_in(paths, part(0), without, cancelled);
                matches.extend(others.into_iter().filter_map(|thread| thread.join().ok()).flatten());
                matches
            })
        };
        matches.sort_unstable_by_key(|found| (std::cmp::Reverse(found.score), found.at));
        matches.truncate(MAX_RESULTS);
        matches
    }

    /// Like [`best_of`](Self::best_of), unsorted.
    fn best_in(
        &self,
        paths: &Paths,
        range: Range<usize>,
        without: &[Range<usize>],
        cancelled: &AtomicBool,
    ) -> Vec<Match> {
        let mut matcher = matcher();
        let mut characters = Vec::new();
        let mut top = TopMatches::default();
        for (count, at) in range.enumerate() {
            if count % CANCEL_CHECK == 0 && cancelled.load(Ordering::Relaxed) {
                break;
            }
            let path = paths.get(at);
            if path.letters & self.letters != self.letters || without.iter().any(|range| range.contains(&at)) {
                continue;
            }
            let score = match &self.scorer {
                Some(scorer) if Scorer::takes(path) => scorer.score(path.text),
                _ => self.pattern.score(Utf32Str::new(path.text, &mut characters), &mut matcher),
            };
            if let Some(score) = score {
                top.offer(Match { at, score });
                // Later paths can only be as good, and sort behind.
                if top.worst() >= Some(self.best) {
                    break;
                }
            }
        }
        top.matches
    }

    /// The sorted positions of the matching characters.
    pub(crate) fn positions(&self, path: PathRef<'_>) -> Vec<u32> {
        let mut positions = Vec::new();
        let mut characters = Vec::new();
        let haystack = Utf32Str::new(path.text, &mut characters);
        self.pattern.indices(haystack, &mut matcher(), &mut positions);
        positions.sort_unstable();
        positions.dedup();
        positions
    }
}

fn matcher() -> Matcher {
    Matcher::new(Config::DEFAULT.match_paths())
}

/// The best matches so far, in the order of their positions.
#[derive(Default)]
struct TopMatches {
    matches: Vec<Match>,
    /// The position in `matches` of the worst one, once there are enough.
    worst: Option<usize>,
}

impl TopMatches {
    /// The score to beat.
    fn worst(&self) -> Option<u32> {
        self.worst.map(|at| self.matches[at].score)
    }

    fn offer(&mut self, new: Match) {
        match self.worst {
            Some(worst) if new.score <= self.matches[worst].score => return,
            Some(worst) => self.matches[worst] = new,
            None => self.matches.push(new),
        }
        if self.matches.len() == MAX_RESULTS {
            let by_rank = |(_, found): &(usize, &Match)| (found.score, std::cmp::Reverse(found.at));
            self.worst = self.matches.iter().enumerate().min_by_key(by_rank).map(|(at, _)| at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::btree_set;
    use proptest::prelude::*;

    use super::*;
    use crate::Index;
    use crate::index::FoundPath;

    fn index(paths: impl IntoIterator<Item = impl Into<String>>) -> Index {
        Index::new(paths.into_iter().map(|path| FoundPath { path: path.into(), is_dir: false }).collect())
    }

    fn check(query: &str, paths: &[&str], expected: &[(&str, u32)]) {
        let index = index(paths.iter().copied());
        let matches = Query::new(query).best_of(&index.main, &[], &AtomicBool::new(false));
        let found: Vec<_> = matches.iter().map(|found| (index.main.get(found.at).text, found.score)).collect();
        assert_eq!(found, expected, "{query}");
    }

    #[test]
    fn better_matches_come_first_and_equal_ones_by_path() {
        check("alpha", &["src/alpha.rs"], &[("src/alpha.rs", 134)]);
        check("alp", &["x/alp", "b/alp", "a_l_p"], &[("b/alp", 84), ("x/alp", 84), ("a_l_p", 76)]);
    }

    #[test]
    fn typed_case_and_accents_matter() {
        check("foobar", &["fooBar.txt"], &[("fooBar.txt", 159)]);
        check("ALPHA", &["alpha.txt"], &[]);
        check("ubung", &["Übung.txt"], &[("Übung.txt", 134)]);
    }

    #[test]
    fn words_exclusions_and_anchors() {
        check("th wi", &["wi th space.txt"], &[("wi th space.txt", 115)]);
        check("keep !test", &["keep.rs", "keep_test.rs"], &[("keep.rs", 109)]);
        check("^a", &["ab", "ba"], &[("ab", 34)]);
        check("!a", &["ab", "b"], &[("b", 0)]);
        check("  ", &["a"], &[("a", 0)]);
    }

    #[test]
    fn a_cancelled_search_ends_at_once() {
        let index = index((0..5000).map(|number| format!("file{number}")));
        assert_eq!(Query::new("file").best_of(&index.main, &[], &AtomicBool::new(true)), []);
    }

    #[test]
    fn positions_count_characters() {
        let index = index(["ü/alpha"]);
        assert_eq!(Query::new("alp").positions(index.main.get(0)), [2, 3, 4]);
    }

    proptest! {
        /// Rejecting paths early and stopping early do not change the result.
        #[test]
        fn the_best_matches_equal_those_of_a_full_search(paths in btree_set("[a-c_/.ÜA]{1,6}", 0..300), query in "[a-c_A !^$']{1,4}") {
            let index = index(paths.iter().cloned().collect::<BTreeSet<_>>());
            let query = Query::new(&query);
            let mut all: Vec<Match> = (0..index.main.len())
                .filter_map(|at| {
                    let mut characters = Vec::new();
                    let haystack = Utf32Str::new(index.main.get(at).text, &mut characters);
                    Some(Match { at, score: query.pattern.score(haystack, &mut matcher())? })
                })
                .collect();
            all.sort_by_key(|found| (std::cmp::Reverse(found.score), found.at));
            all.truncate(MAX_RESULTS);
            prop_assert_eq!(query.best_of(&index.main, &[], &AtomicBool::new(false)), all);
        }
    }
}
