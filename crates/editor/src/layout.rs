//! [`Layout`]: the rows of a text in a terminal of some width, and where the cursor is.

use crate::text::Text;
use crate::width::char_width;

/// A tab is shown as this.
const TAB: &str = "    ";

/// Shown for each character of a secret.
const HIDDEN: char = '*';

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub rows: Vec<Row>,
    /// The row of the cursor, and its column.
    pub cursor: (usize, usize),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub text: String,
    /// Whether the row begins a line of the text.
    pub begins_line: bool,
}

impl Layout {
    /// Breaks the text into rows of at most `width` columns. The cursor may be after the last column.
    pub fn new(text: &Text, width: usize, secret: bool) -> Self {
        let mut layout = Builder { width: width.max(2), rows: Vec::new(), column: 0 };
        layout.begin_line();
        let mut cursor = None;
        for (at, c) in text.as_str().char_indices() {
            if at == text.cursor() {
                cursor = Some(layout.position());
            }
            match c {
                '\n' => layout.begin_line(),
                _ if secret => layout.push(HIDDEN),
                '\t' => TAB.chars().for_each(|c| layout.push(c)),
                // An entry of the history may be from anywhere.
                c if c.is_control() => layout.push(char::REPLACEMENT_CHARACTER),
                c => match text.label(c) {
                    Some(label) => label.chars().for_each(|c| layout.push(c)),
                    None => layout.push(c),
                },
            }
        }
        let cursor = cursor.unwrap_or_else(|| layout.position());
        Self { rows: layout.rows, cursor }
    }

    /// At most `height` rows around the cursor.
    pub fn window(mut self, height: usize) -> Self {
        let height = height.max(1);
        let first = (self.cursor.0 + 1).saturating_sub(height);
        self.rows.drain(..first);
        self.rows.truncate(height);
        self.cursor.0 -= first;
        self
    }
}

struct Builder {
    width: usize,
    rows: Vec<Row>,
    column: usize,
}

impl Builder {
    fn begin_line(&mut self) {
        self.rows.push(Row { text: String::new(), begins_line: true });
        self.column = 0;
    }

    fn push(&mut self, c: char) {
        let columns = char_width(c);
        if self.column + columns > self.width {
            self.rows.push(Row::default());
            self.column = 0;
        }
        if let Some(row) = self.rows.last_mut() {
            row.text.push(c);
        }
        self.column += columns;
    }

    fn position(&self) -> (usize, usize) {
        (self.rows.len() - 1, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, width: usize) -> (Vec<String>, (usize, usize)) {
        let layout = Layout::new(&Text::new(text), width, false);
        (layout.rows.into_iter().map(|row| row.text).collect(), layout.cursor)
    }

    #[test]
    fn long_lines_are_broken_at_the_width() {
        assert_eq!(rows("", 4), (vec![String::new()], (0, 0)));
        assert_eq!(rows("abcdef\ngh", 4), (vec!["abcd".into(), "ef".into(), "gh".into()], (2, 2)));
        assert_eq!(rows("漢字漢", 5), (vec!["漢字".into(), "漢".into()], (1, 2)));
        assert_eq!(rows("abcd", 4), (vec!["abcd".into()], (0, 4)));
    }

    #[test]
    fn the_cursor_is_where_the_next_character_goes() {
        let mut text = Text::new("abcdef");
        text.left();
        assert_eq!(Layout::new(&text, 4, false).cursor, (1, 1));
        text.home();
        assert_eq!(Layout::new(&text, 4, false).cursor, (0, 0));
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(rows("a\u{1b}[2Jb", 20).0, ["a\u{fffd}[2Jb"]);
    }

    #[test]
    fn secrets_are_hidden() {
        let layout = Layout::new(&Text::new("hunter2"), 20, true);
        assert_eq!(layout.rows[0].text, "*******");
    }

    #[test]
    fn a_window_keeps_the_cursor() {
        let mut text = Text::new("1\n2\n3\n4\n5");
        let shown = |text: &Text| {
            let layout = Layout::new(text, 9, false).window(2);
            (layout.rows.iter().map(|row| row.text.clone()).collect::<Vec<_>>().join(","), layout.cursor.0)
        };
        assert_eq!(shown(&text), ("4,5".into(), 1));
        (0..4).for_each(|_| _ = text.up());
        assert_eq!(shown(&text), ("1,2".into(), 0));
    }
}
