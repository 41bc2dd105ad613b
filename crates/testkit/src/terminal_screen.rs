//! [`TerminalScreen`]: what a terminal shows after a program has written to it, for the sequences that ours use.

/// A terminal that keeps everything that was scrolled out of view. Wide characters take two cells. A resize breaks long
/// lines and joins broken ones, as most terminals do.
pub struct TerminalScreen {
    cols: usize,
    rows: usize,
    /// All lines, those that were scrolled out of view first.
    lines: Vec<Line>,
    /// The index of the line of the cursor.
    row: usize,
    column: usize,
    pending: Vec<u8>,
}

#[derive(Clone, Default)]
struct Line {
    /// The second cell of a wide character is `\0`.
    cells: Vec<char>,
    /// Whether the line goes on in the next one.
    continued: bool,
}

impl TerminalScreen {
    pub fn new(cols: usize, rows: usize) -> Self {
        Self { cols, rows, lines: vec![Line::default()], row: 0, column: 0, pending: Vec::new() }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.pending.push(*byte);
            self.step();
        }
    }

    /// Every line that was written, without spaces at the end and without empty lines at the end.
    pub fn lines(&self) -> Vec<String> {
        let text = |line: &Line| line.cells.iter().filter(|c| **c != '\0').collect::<String>().trim_end().to_owned();
        let mut lines: Vec<String> = self.lines.iter().map(text).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    /// The same as one text.
    pub fn text(&self) -> String {
        self.lines().join("\n")
    }

    /// The line and the column of the cursor.
    pub fn cursor(&self) -> (usize, usize) {
        (self.row, self.column)
    }

    pub fn resize(&mut self, cols: usize, rows: usize) {
        let (mut lines, mut cursor) = (Vec::new(), (0, 0));
        let mut whole: Vec<char> = Vec::new();
        let mut at = None;
        for (index, line) in std::mem::take(&mut self.lines).into_iter().enumerate() {
            if index == self.row {
                at = Some(whole.len() + self.column);
            }
            whole.extend(&line.cells);
            if line.continued {
                continue;
            }
            let cells = std::mem::take(&mut whole);
            let count = cells.len().div_ceil(cols).max(1);
            if let Some(at) = at.take() {
                cursor = (lines.len() + (at / cols).min(count - 1), at % cols);
            }
            let mut parts: Vec<Line> =
                cells.chunks(cols).map(|part| Line { cells: part.to_vec(), continued: true }).collect();
            if parts.is_empty() {
                parts.push(Line::default());
            }
            if let Some(last) = parts.last_mut() {
                last.continued = false;
            }
            lines.extend(parts);
        }
        (self.row, self.column) = cursor;
        (self.lines, self.cols, self.rows) = (lines, cols, rows);
    }

    fn step(&mut self) {
        match self.pending[..] {
            [0x1b] | [0x1b, b'['] => {}
            [0x1b, b'[', .., last] if (0x40..=0x7e).contains(&last) => {
                let params = String::from_utf8_lossy(&self.pending[2..self.pending.len() - 1]).into_owned();
                self.pending.clear();
                self.control(&params, last);
            }
            [0x1b, b'[', ..] => {}
            [0x1b, _] => self.pending.clear(),
            [b'\r'] => {
                self.column = 0;
                self.pending.clear();
            }
            [b'\n'] => {
                self.next_row();
                self.pending.clear();
            }
            [0x08] => {
                self.column = self.column.saturating_sub(1);
                self.pending.clear();
            }
            [..=0x1f | 0x7f] => self.pending.clear(),
            _ => match str::from_utf8(&self.pending).map(|text| text.chars().next()) {
                Ok(c) => {
                    self.pending.clear();
                    c.into_iter().for_each(|c| self.put(c));
                }
                Err(error) if error.error_len().is_none() => {}
                Err(_) => self.pending.clear(),
            },
        }
    }

    fn put(&mut self, c: char) {
        let width = unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
        if width == 0 {
            return;
        }
        if self.column + width > self.cols {
            self.lines[self.row].continued = true;
            self.next_row();
            self.column = 0;
        }
        let cells = &mut self.lines[self.row].cells;
        cells.resize(cells.len().max(self.column + width), ' ');
        cells[self.column] = c;
        cells[self.column + 1..self.column + width].fill('\0');
        self.column += width;
    }

    fn next_row(&mut self) {
        self.row += 1;
        if self.row == self.lines.len() {
            self.lines.push(Line::default());
        }
    }

    fn control(&mut self, params: &str, last: u8) {
        let number = params.split(';').next().and_then(|number| number.parse().ok());
        let count: usize = number.unwrap_or(1).max(1);
        let top = self.lines.len().saturating_sub(self.rows);
        match last {
            b'A' => self.row = self.row.saturating_sub(count).max(top),
            b'B' => {
                let bottom = (top + self.rows - 1).min(self.row + count);
                self.lines.resize(self.lines.len().max(bottom + 1), Line::default());
                self.row = bottom;
            }
            b'C' => self.column = (self.column + count).min(self.cols - 1),
            b'D' => self.column = self.column.saturating_sub(count),
            b'H' => (self.row, self.column) = (top, 0),
            b'J' => {
                let first = if number == Some(2) { top } else { self.row };
                let column = if number == Some(2) { 0 } else { self.column };
                self.lines[first].cells.truncate(column);
                self.lines[first].continued = false;
                self.lines.truncate(first.max(self.row) + 1);
                self.lines[first + 1..].fill(Line::default());
            }
            b'K' => self.lines[self.row].cells.truncate(self.column),
            _ => {}
        }
    }
}
