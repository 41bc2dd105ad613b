//! Columns of text in a terminal. Escape sequences that set colours take none.

use unicode_width::UnicodeWidthChar;

/// The columns of a character; a control character has none.
pub fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// The columns of a text, without its escape sequences.
pub fn text_width(text: &str) -> usize {
    visible(text).map(|(_, c)| char_width(c)).sum()
}

/// The longest beginning of `text` that has at most `columns` columns. Escape sequences are kept.
pub fn fit(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in visible(text) {
        used += char_width(c);
        if used > columns {
            return &text[..at];
        }
    }
    text
}

/// The characters outside of escape sequences `ESC [ … letter`, with their positions.
fn visible(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut escape = Escape::None;
    text.char_indices().filter(move |(_, c)| {
        let shown = escape == Escape::None && *c != '\u{1b}';
        escape = match (escape, *c) {
            (Escape::None, '\u{1b}') => Escape::Begun,
            (Escape::Begun, '[') => Escape::Sequence,
            (Escape::Sequence, c) if !c.is_ascii_alphabetic() => Escape::Sequence,
            _ => Escape::None,
        };
        shown
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Begun,
    Sequence,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_take_no_columns() {
        for (text, columns) in [("", 0), ("abc", 3), ("\u{1b}[1;31mred\u{1b}[0m", 3), ("漢字", 4), ("e\u{301}", 1)] {
            assert_eq!(text_width(text), columns, "{text:?}");
        }
    }

    #[test]
    fn text_is_cut_between_characters() {
        for (text, columns, cut) in [("abc", 3, "abc"), ("abc", 2, "ab"), ("漢字", 3, "漢"), ("a", 0, "")] {
            assert_eq!(fit(text, columns), cut, "{text:?} {columns}");
        }
        assert_eq!(fit("\u{1b}[1mabc", 2), "\u{1b}[1mab");
    }
}
