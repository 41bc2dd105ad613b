//! Finds the position of a chunk in a file, and applies it. Models misremember white space and typography, so the
//! position is searched exactly first, then with increasing tolerance.

use std::borrow::Cow;
use std::cell::OnceCell;

use crate::parse::{Chunk, Line};

/// Why a chunk has no position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotFound {
    Context(String),
    /// The lines that were searched for.
    Lines(String),
}

/// The text with all chunks applied. It ends with a line break unless it is empty.
///
/// Context lines stay as the file has them, also where the chunk differs in white space or typography. New lines get
/// the most frequent line ending of the file.
pub(crate) fn patched(text: &str, chunks: &[Chunk]) -> Result<String, NotFound> {
    let mut lines: Vec<_> = text.split('\n').collect();
    lines.pop_if(|last| last.is_empty());
    let file = Haystack::new(&lines);
    let ending = if lines.iter().filter(|line| line.ends_with('\r')).count() * 2 > lines.len() { "\r" } else { "" };

    let mut edits: Vec<Edit<'_>> = Vec::new();
    let mut cursor = 0;
    for chunk in chunks {
        if let Some(context) = &chunk.context {
            let found = file.find(&[context], cursor, false);
            cursor = found.ok_or_else(|| NotFound::Context(context.clone()))? + 1;
        }
        let wanted: Vec<_> = chunk.lines.iter().map(ChunkLine::from).collect();
        if !wanted.iter().any(ChunkLine::is_old) {
            edits.push(Edit { start: lines.len(), lines: wanted });
            continue;
        }
        let (start, lines) = place(&file, wanted, cursor, chunk.end_of_file)?;
        cursor = start + lines.iter().filter(|line| line.is_old()).count();
        edits.push(Edit { start, lines });
    }
    // Only additions at the end can be out of order, and those keep their order.
    edits.sort_by_key(|edit| edit.start);

    let mut result = String::with_capacity(text.len());
    let mut copied = 0;
    let mut push = |line: &str, ending: &str| {
        result.push_str(line);
        result.push_str(ending);
        result.push('\n');
    };
    for edit in edits {
        lines[copied..edit.start].iter().for_each(|line| push(line, ""));
        copied = edit.start;
        for line in edit.lines {
            match line {
                ChunkLine::Kept(_) => push(lines[copied], ""),
                ChunkLine::New(text) => push(text, if text.ends_with('\r') { "" } else { ending }),
                ChunkLine::Gone(_) => {}
            }
            copied += usize::from(line.is_old());
        }
    }
    lines[copied..].iter().for_each(|line| push(line, ""));
    Ok(result)
}

/// The position of a chunk, and its lines that apply there.
fn place<'a>(
    file: &Haystack<'_>,
    mut lines: Vec<ChunkLine<'a>>,
    from: usize,
    at_end: bool,
) -> Result<(usize, Vec<ChunkLine<'a>>), NotFound> {
    let old: Vec<_> = lines.iter().filter_map(ChunkLine::old).collect();
    if let Some(start) = file.find(&old, from, at_end) {
        return Ok((start, lines));
    }
    // A blank line at the end of a chunk is often unintended.
    if let Some(("", shorter)) = old.split_last().map(|(last, rest)| (*last, rest))
        && let Some(start) = file.find(shorter, from, at_end)
    {
        drop_last_old(&mut lines);
        return Ok((start, lines));
    }
    Err(NotFound::Lines(old.join("\n")))
}

/// Removes the blank last old line of a chunk, and a blank line that would replace it.
fn drop_last_old(lines: &mut Vec<ChunkLine<'_>>) {
    let Some(last) = lines.iter().rposition(ChunkLine::is_old) else { return };
    if matches!(lines[last], ChunkLine::Kept(_)) && last + 1 < lines.len() {
        lines[last] = ChunkLine::New("");
        return;
    }
    lines.remove(last);
    lines.pop_if(|line| matches!(line, ChunkLine::New("")));
}

struct Edit<'a> {
    start: usize,
    lines: Vec<ChunkLine<'a>>,
}

#[derive(Clone, Copy)]
enum ChunkLine<'a> {
    Kept(&'a str),
    New(&'a str),
    Gone(&'a str),
}

impl<'a> From<&'a Line> for ChunkLine<'a> {
    fn from(line: &'a Line) -> Self {
        match line {
            Line::Context(text) => Self::Kept(text),
            Line::Added(text) => Self::New(text),
            Line::Removed(text) => Self::Gone(text),
        }
    }
}

impl<'a> ChunkLine<'a> {
    /// The line that the file must have.
    fn old(&self) -> Option<&'a str> {
        match self {
            Self::Kept(text) | Self::Gone(text) => Some(text),
            Self::New(_) => None,
        }
    }

    fn is_old(&self) -> bool {
        self.old().is_some()
    }
}

type Normalizer = for<'a> fn(&'a str) -> Cow<'a, str>;

/// Lines are equal if one of these makes them equal; earlier ones are tried first.
const NORMALIZERS: [Normalizer; 4] =
    [|line| line.into(), |line| line.trim_end().into(), |line| line.trim().into(), |line| plain(line).into()];

/// Replaces typographic dashes, quotes and spaces by ASCII.
fn plain(line: &str) -> String {
    let plain: String = line
        .chars()
        .map(|c| match c {
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            '\u{2018}'..='\u{201b}' => '\'',
            '\u{201c}'..='\u{201f}' => '"',
            '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
            c => c,
        })
        .collect();
    plain.trim().to_owned()
}

/// The lines of a file, normalized by each function when first needed.
struct Haystack<'a> {
    lines: &'a [&'a str],
    forms: [OnceCell<Vec<Cow<'a, str>>>; NORMALIZERS.len()],
}

impl<'a> Haystack<'a> {
    fn new(lines: &'a [&'a str]) -> Self {
        Self { lines, forms: Default::default() }
    }

    /// The first position of the lines at or after `from`, or only at the end.
    fn find(&self, needle: &[&str], from: usize, at_end: bool) -> Option<usize> {
        let last = self.lines.len().checked_sub(needle.len())?;
        let from = if at_end { from.max(last) } else { from };
        NORMALIZERS.iter().zip(&self.forms).find_map(|(form, cell)| {
            let lines = cell.get_or_init(|| self.lines.iter().map(|line| form(line)).collect());
            let needle: Vec<_> = needle.iter().map(|line| form(line)).collect();
            Some(from + position(lines.get(from..)?, &needle)?)
        })
    }
}

/// The first position of `needle`, in linear time (Knuth-Morris-Pratt).
fn position<T: PartialEq>(haystack: &[T], needle: &[T]) -> Option<usize> {
    // For each prefix of the needle, the length of its longest border.
    let mut borders = vec![0; needle.len()];
    for end in 1..needle.len() {
        borders[end] = advance(needle, &borders, borders[end - 1], &needle[end]);
    }
    let mut matched = 0;
    if needle.is_empty() {
        return Some(0);
    }
    haystack.iter().enumerate().find_map(|(at, item)| {
        matched = advance(needle, &borders, matched, item);
        (matched == needle.len()).then(|| at + 1 - matched)
    })
}

fn advance<T: PartialEq>(needle: &[T], borders: &[usize], mut matched: usize, item: &T) -> usize {
    while matched > 0 && needle[matched] != *item {
        matched = borders[matched - 1];
    }
    matched + usize::from(needle[matched] == *item)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn position_is_the_first_equal_window(
            haystack in prop::collection::vec(0..3u8, 0..40),
            needle in prop::collection::vec(0..3u8, 0..6),
        ) {
            let naive = if needle.is_empty() { Some(0) } else { haystack.windows(needle.len()).position(|w| w == needle) };
            prop_assert_eq!(position(&haystack, &needle), naive);
        }
    }

    #[test]
    fn typography_becomes_ascii() {
        assert_eq!(plain("\u{3000}\u{201c}a\u{201d} \u{2013}\u{a0}\u{2018}b\u{2019}\u{2212} "), "\"a\" - 'b'-");
    }
}
