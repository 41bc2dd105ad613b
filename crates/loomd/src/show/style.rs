//! [`Style`]: width and colour of a terminal.

use unicode_width::UnicodeWidthChar;

/// Below this width text is not wrapped, as a line would hold a single word.
const NARROWEST: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// `None` if the output is no terminal: nothing is wrapped or cut.
    width: Option<usize>,
    colour: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    Bold,
    Dim,
    Italic,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Style {
    pub fn new(width: Option<usize>, colour: bool) -> Self {
        Self { width: width.map(|width| width.max(NARROWEST)), colour }
    }

    /// The columns of the terminal.
    pub fn width(self) -> Option<usize> {
        self.width
    }

    pub fn has_colour(self) -> bool {
        self.colour
    }

    pub fn paint(self, paint: Paint, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match paint {
            Paint::Bold => 1,
            Paint::Dim => 2,
            Paint::Italic => 3,
            Paint::Red => 31,
            Paint::Green => 32,
            Paint::Yellow => 33,
            Paint::Cyan => 36,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// The beginning of a line that fits beside `used` columns.
    pub fn cut(self, line: &str, used: usize) -> String {
        let Some(room) = self.width.map(|width| width.saturating_sub(used)) else { return line.to_owned() };
        let mut taken = 0;
        for (at, c) in line.char_indices() {
            taken += columns(c);
            if taken > room {
                // One column is for the ellipsis.
                let end = line[..at].char_indices().rev().find(|(at, _)| width(&line[..*at]) < room);
                return format!("{}…", end.map_or("", |(at, _)| &line[..at]));
            }
        }
        line.to_owned()
    }
}

pub(super) fn columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

pub(super) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_to_the_available_columns() {
        let style = Style::new(Some(20), false);
        for (line, used, shown) in [
            ("short", 0, "short"),
            ("exactly twenty chars", 0, "exactly twenty chars"),
            ("exactly twenty chars!", 0, "exactly twenty char…"),
            ("exactly twenty chars", 10, "exactly t…"),
            ("漢字漢字漢字漢字漢字漢字", 10, "漢字漢字…"),
            ("anything", 30, "…"),
        ] {
            assert_eq!(style.cut(line, used), shown, "{line}");
        }
        assert_eq!(Style::new(None, false).cut(&"x".repeat(500), 0).len(), 500);
    }
}
