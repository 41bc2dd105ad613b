//! [`Region`]: the rows at the end of a terminal's output that are drawn again and again. Printed text goes above
//! them and stays.

use std::fmt::Write;

use crate::width::{fit, text_width};

/// The rows to draw. A row wider than the terminal is cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    pub rows: Vec<String>,
    /// The row and the column of the cursor; without one it is hidden.
    pub cursor: Option<(usize, usize)>,
}

pub struct Region {
    /// The columns of the terminal.
    width: usize,
    /// What is drawn.
    drawn: Frame,
}

const ERASE_BELOW: &str = "\u{1b}[J";
const ERASE_TO_END_OF_LINE: &str = "\u{1b}[K";
const HIDE_CURSOR: &str = "\u{1b}[?25l";
const SHOW_CURSOR: &str = "\u{1b}[?25h";
const RESET: &str = "\u{1b}[0m";

impl Region {
    pub fn new(width: usize) -> Self {
        Self { width, drawn: Frame::default() }
    }

    /// Returns the bytes that print `text` above the region, and draw `frame` as the region. `text` ends with a line
    /// end or is empty.
    pub fn draw(&mut self, text: &str, mut frame: Frame) -> String {
        for row in &mut frame.rows {
            // The last column stays free: terminals differ in what a character in it does to the cursor.
            let cut = fit(row, self.width.saturating_sub(1));
            if cut.len() < row.len() {
                *row = format!("{cut}{RESET}");
            }
        }
        if text.is_empty() && frame == self.drawn {
            return String::new();
        }
        let mut out = HIDE_CURSOR.to_owned();
        if text.is_empty() && frame.rows.len() == self.drawn.rows.len() && !frame.rows.is_empty() {
            self.change_rows(&frame, &mut out);
        } else {
            self.move_to_top(&mut out);
            out += ERASE_BELOW;
            out += text;
            out += &frame.rows.join("\n");
            place_cursor(&frame, frame.rows.len().saturating_sub(1), &mut out);
        }
        self.drawn = frame;
        out
    }

    /// Returns the bytes that erase the region and show the cursor in its place.
    pub fn erase(&mut self) -> String {
        let mut out = String::new();
        self.move_to_top(&mut out);
        self.drawn = Frame::default();
        out + ERASE_BELOW + SHOW_CURSOR
    }

    /// Notes that the screen was erased, and the cursor is where the region begins.
    pub fn reset(&mut self) {
        self.drawn = Frame::default();
    }

    /// Notes the new width of the terminal, which has broken rows that are too long for it.
    pub fn resize(&mut self, width: usize) {
        if width == self.width {
            return;
        }
        let parts = |columns: usize| columns.saturating_sub(1) / width.max(1);
        let (row, column) = self.cursor();
        let above: usize = self.drawn.rows.iter().take(row).map(|row| 1 + parts(text_width(row))).sum();
        let cursor = (above + column / width.max(1), 0);
        let rows: usize = self.drawn.rows.iter().map(|row| 1 + parts(text_width(row))).sum();
        // Placeholders, which differ from every row that is drawn next.
        self.drawn = Frame { rows: vec!["\0".to_owned(); rows], cursor: Some(cursor) };
        self.width = width;
    }

    /// Draws the rows that differ.
    fn change_rows(&mut self, frame: &Frame, out: &mut String) {
        let (mut at, _) = self.cursor();
        for (index, row) in frame.rows.iter().enumerate() {
            if self.drawn.rows[index] != *row {
                move_rows(at, index, out);
                _ = write!(out, "\r{row}{ERASE_TO_END_OF_LINE}");
                at = index;
            }
        }
        place_cursor(frame, at, out);
    }

    fn move_to_top(&self, out: &mut String) {
        let (row, _) = self.cursor();
        out.push('\r');
        move_rows(row, 0, out);
    }

    /// Where the cursor is: at the end of the last row if the frame has none.
    fn cursor(&self) -> (usize, usize) {
        let last = self.drawn.rows.len().saturating_sub(1);
        self.drawn.cursor.unwrap_or_else(|| (last, self.drawn.rows.last().map_or(0, |row| text_width(row))))
    }
}

/// Moves the cursor from a row to another, keeping its column.
fn move_rows(from: usize, to: usize, out: &mut String) {
    _ = match from.cmp(&to) {
        std::cmp::Ordering::Greater => write!(out, "\u{1b}[{}A", from - to),
        std::cmp::Ordering::Less => write!(out, "\u{1b}[{}B", to - from),
        std::cmp::Ordering::Equal => Ok(()),
    };
}

/// Moves the cursor from `row` to its place in the frame, and shows it.
fn place_cursor(frame: &Frame, row: usize, out: &mut String) {
    let last = frame.rows.len().saturating_sub(1);
    let (to, column) = frame.cursor.unwrap_or_else(|| (last, frame.rows.last().map_or(0, |row| text_width(row))));
    move_rows(row, to, out);
    out.push('\r');
    if column > 0 {
        _ = write!(out, "\u{1b}[{column}C");
    }
    if frame.cursor.is_some() {
        out.push_str(SHOW_CURSOR);
    }
}

#[cfg(test)]
mod tests {
    use loomd_testkit::TerminalScreen;
    use proptest::prelude::*;

    use super::*;

    fn frame(rows: &[&str], cursor: Option<(usize, usize)>) -> Frame {
        Frame { rows: rows.iter().map(|row| (*row).to_owned()).collect(), cursor }
    }

    fn feed(screen: &mut TerminalScreen, bytes: &str) {
        // As a terminal with output processing does.
        screen.feed(bytes.replace('\n', "\r\n").as_bytes());
    }

    #[test]
    fn text_is_printed_above_the_region() {
        let (mut screen, mut region) = (TerminalScreen::new(20, 6), Region::new(20));
        feed(&mut screen, &region.draw("one\n", frame(&["status", "> in"], Some((1, 4)))));
        assert_eq!(screen.lines(), ["one", "status", "> in"]);
        assert_eq!(screen.cursor(), (2, 4));
        feed(&mut screen, &region.draw("two\nthree\n", frame(&["> input"], Some((0, 3)))));
        assert_eq!(screen.lines(), ["one", "two", "three", "> input"]);
        assert_eq!(screen.cursor(), (3, 3));
        feed(&mut screen, &region.draw("", frame(&["a", "b", "c"], None)));
        assert_eq!(screen.lines(), ["one", "two", "three", "a", "b", "c"]);
        feed(&mut screen, &region.draw("four\n", frame(&["a", "b", "c"], None)));
        assert_eq!(screen.lines(), ["one", "two", "three", "four", "a", "b", "c"], "the screen scrolls");
        feed(&mut screen, &region.erase());
        assert_eq!(screen.lines(), ["one", "two", "three", "four"]);
    }

    #[test]
    fn an_unchanged_frame_writes_nothing_and_a_changed_row_only_itself() {
        let mut region = Region::new(20);
        region.draw("", frame(&["status", "> in"], Some((1, 4))));
        assert_eq!(region.draw("", frame(&["status", "> in"], Some((1, 4)))), "");
        let changed = region.draw("", frame(&["working", "> in"], Some((1, 4))));
        assert!(changed.contains("working") && !changed.contains("in\u{1b}[K"), "{changed:?}");
    }

    #[test]
    fn rows_are_cut_to_the_width() {
        let (mut screen, mut region) = (TerminalScreen::new(10, 4), Region::new(10));
        feed(&mut screen, &region.draw("", frame(&["\u{1b}[31ma very long row", "b"], Some((1, 0)))));
        assert_eq!(screen.lines(), ["a very lo", "b"]);
    }

    #[test]
    fn a_narrower_terminal_leaves_nothing_of_the_old_region() {
        let (mut screen, mut region) = (TerminalScreen::new(20, 8), Region::new(20));
        let before = frame(&["a status of some len", "> text that is long"], Some((1, 19)));
        feed(&mut screen, &region.draw("printed\n", before));
        screen.resize(8, 8);
        region.resize(8);
        feed(&mut screen, &region.draw("", frame(&["status", "> text"], Some((1, 6)))));
        assert_eq!(screen.lines(), ["printed", "status", "> text"]);
        screen.resize(30, 8);
        region.resize(30);
        feed(&mut screen, &region.draw("more\n", frame(&["> text"], Some((0, 6)))));
        assert_eq!(screen.lines(), ["printed", "more", "> text"]);
    }

    proptest! {
        #[test]
        fn the_screen_is_what_was_printed_and_the_last_frame(
            steps in proptest::collection::vec(("([a-z漢]{0,9}\n){0,3}", "([a-z]{1,25}\n){1,4}", 0usize..4), 1..12)
        ) {
            let (mut screen, mut region) = (TerminalScreen::new(20, 6), Region::new(20));
            let mut printed = String::new();
            for (text, rows, row) in &steps {
                let rows: Vec<&str> = rows.lines().collect();
                let row = (*row).min(rows.len() - 1);
                feed(&mut screen, &region.draw(text, frame(&rows, Some((row, 1)))));
                printed += text;
                let mut expected: Vec<String> = printed.lines().map(str::to_owned).collect();
                expected.extend(rows.iter().map(|row| row.chars().take(19).collect::<String>()));
                prop_assert_eq!(screen.lines(), expected);
            }
        }
    }
}
