//! A term, where it occurs in a text, and the surroundings of a hit.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

/// Characters of a snippet before and after the hit.
const BEFORE: usize = 50;
const AFTER: usize = 100;
/// Marks of a cut text.
const CUT_BEFORE: &str = "... ";
const CUT_AFTER: &str = " ...";

/// A literal text that is looked for in any case.
#[derive(Clone, Debug)]
pub struct Term {
    finder: memmem::Finder<'static>,
    folded: String,
}

/// A hit with its surroundings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    pub text: String,
    /// The bytes of the hit inside the text.
    pub hit: Range<usize>,
}

impl Term {
    pub fn new(term: &str) -> Self {
        let folded = fold(term).text.into_owned();
        Self { finder: memmem::Finder::new(folded.as_bytes()).into_owned(), folded }
    }

    /// The term in one case.
    pub fn folded(&self) -> &str {
        &self.folded
    }

    /// Where the term occurs in a text, from the start on and without overlaps.
    pub fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        let folded = fold(text);
        let mut from = 0;
        std::iter::from_fn(move || {
            if self.folded.is_empty() {
                return None;
            }
            let start = from + self.finder.find(&folded.text.as_bytes()[from..])?;
            from = start + self.folded.len();
            Some(folded.original(start)..folded.original_end(from))
        })
    }
}

/// A text in one case, and where its bytes come from.
struct Folded<'a> {
    text: Cow<'a, str>,
    /// For each byte the character that it comes from; empty when every byte stays where it is.
    origins: Vec<u32>,
    /// The end of the text that was folded.
    end: usize,
}

impl Folded<'_> {
    fn original(&self, at: usize) -> usize {
        if self.origins.is_empty() { at } else { self.origins.get(at).map_or(self.end, |origin| *origin as usize) }
    }

    /// Where the character ends that the byte before `at` belongs to.
    fn original_end(&self, at: usize) -> usize {
        if self.origins.is_empty() {
            return at;
        }
        let last = self.origins.get(at.saturating_sub(1)).copied();
        let next = self.origins[at.min(self.origins.len())..].iter().find(|origin| Some(**origin) != last);
        next.map_or(self.end, |origin| *origin as usize)
    }
}

/// Texts that differ only in case are folded to the same text.
fn fold(text: &str) -> Folded<'_> {
    if text.is_ascii() {
        let folded = match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => Cow::Owned(text.to_ascii_lowercase()),
            false => Cow::Borrowed(text),
        };
        return Folded { text: folded, origins: Vec::new(), end: text.len() };
    }
    let mut folded = String::with_capacity(text.len());
    let mut origins = Vec::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        folded.extend(character.to_lowercase());
        origins.resize(folded.len(), u32::try_from(at).unwrap_or(u32::MAX));
    }
    Folded { text: Cow::Owned(folded), origins, end: text.len() }
}

/// A text in one case, for a filter.
pub(crate) fn folded(text: &str) -> Cow<'_, str> {
    fold(text).text
}

impl Snippet {
    /// The surroundings of a hit as they are written.
    pub fn verbatim(text: &str, hit: Range<usize>) -> Self {
        let start = before(text, hit.start);
        let end = after(text, hit.end);
        let mut snippet = String::new();
        if start > 0 {
            snippet.push_str(CUT_BEFORE);
        }
        let shift = snippet.len();
        snippet.push_str(&text[start..end]);
        if end < text.len() {
            snippet.push_str(CUT_AFTER);
        }
        Self { text: snippet, hit: hit.start - start + shift..hit.end - start + shift }
    }

    /// The surroundings of a hit in one line: white space is one blank each.
    pub fn in_one_line(text: &str, hit: Range<usize>) -> String {
        let verbatim = Self::verbatim(text, hit);
        verbatim.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Where a snippet begins.
fn before(text: &str, hit: usize) -> usize {
    text[..hit].char_indices().rev().nth(BEFORE - 1).map_or(0, |(at, _)| at)
}

/// Where a snippet ends.
fn after(text: &str, hit: usize) -> usize {
    text[hit..].char_indices().nth(AFTER).map_or(text.len(), |(at, _)| hit + at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hits<'a>(term: &str, text: &'a str) -> Vec<&'a str> {
        Term::new(term).find(text).map(|hit| &text[hit]).collect()
    }

    #[test]
    fn case_never_matters_and_hits_do_not_overlap() {
        assert_eq!(hits("wALRus", "The Walrus, the WALRUS"), ["Walrus", "WALRUS"]);
        assert_eq!(hits("aa", "aaaaa"), ["aa", "aa"]);
        assert_eq!(hits("ÄÖ", "säö SÄÖ"), ["äö", "ÄÖ"]);
        assert_eq!(hits("a*b 100%", "a*b 100% aab 100"), ["a*b 100%"]);
        assert!(hits("", "text").is_empty());
        // The dotted capital I is two characters in lower case.
        assert_eq!(hits("i", "xİy"), ["İ"]);
        assert_eq!(hits("y", "xİy"), ["y"]);
    }

    #[test]
    fn a_long_text_is_cut_around_the_hit_and_a_short_one_is_whole() {
        let text = format!("{}pelican {}", "before ".repeat(200), "after ".repeat(200));
        let hit = Term::new("pelican").find(&text).next().unwrap();
        let snippet = Snippet::verbatim(&text, hit.clone());
        assert_eq!(&snippet.text[snippet.hit.clone()], "pelican");
        assert!(snippet.text.starts_with("... ") && snippet.text.ends_with(" ..."));
        assert!(snippet.text.len() < 200);
        assert!(Snippet::in_one_line(&text, hit).starts_with("... "));
        assert_eq!(Snippet::in_one_line("one\n\n two", 0..3), "one two");
        assert_eq!(Snippet::verbatim("one\n two", 5..8).text, "one\n two");
    }

    proptest! {
        #[test]
        fn every_hit_is_the_term_in_some_case(before in "\\PC{0,60}", term in "\\PC{1,8}", after in "\\PC{0,120}") {
            let text = format!("{before}{term}{after}");
            let found: Vec<_> = Term::new(&term).find(&text).collect();
            prop_assert!(!found.is_empty());
            for hit in found {
                let snippet = Snippet::verbatim(&text, hit.clone());
                prop_assert_eq!(&snippet.text[snippet.hit], &text[hit]);
            }
        }
    }
}
