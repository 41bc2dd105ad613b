//! Wraps text while it streams. A word is printed when its end is known; code blocks are not wrapped.

use super::style::{columns, width};

/// A text in lines of at most `room` columns, broken between words.
pub fn wrap_lines(text: &str, room: Option<usize>) -> Vec<String> {
    let mut wrap = Wrap::new(room);
    let lines: Vec<String> = (wrap.push(text) + &wrap.finish()).lines().map(str::to_owned).collect();
    if lines.is_empty() { vec![String::new()] } else { lines }
}

pub struct Wrap {
    /// `None` does not wrap.
    limit: Option<usize>,
    column: usize,
    /// Spaces before the current word.
    spaces: usize,
    word: String,
    code: bool,
}

impl Wrap {
    pub fn new(limit: Option<usize>) -> Self {
        Self { limit, column: 0, spaces: 0, word: String::new(), code: false }
    }

    /// Changes the width from the next word on.
    pub fn set_limit(&mut self, limit: Option<usize>) {
        self.limit = limit;
    }

    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let Some(limit) = self.limit else {
            if let Some(last) = text.chars().next_back() {
                self.column = usize::from(last != '\n');
            }
            return text.to_owned();
        };
        for c in text.chars() {
            match c {
                '\n' => {
                    self.end_word(&mut out, limit);
                    out.push('\n');
                    (self.column, self.spaces) = (0, 0);
                }
                ' ' => {
                    self.end_word(&mut out, limit);
                    self.spaces += 1;
                }
                c => {
                    if !self.code && width(&self.word) + columns(c) > limit {
                        self.end_word(&mut out, limit);
                    }
                    self.word.push(c);
                }
            }
        }
        out
    }

    /// The last word, and the end of the last line.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        if let Some(limit) = self.limit {
            self.end_word(&mut out, limit);
        }
        if self.column > 0 {
            out.push('\n');
        }
        *self = Self::new(self.limit);
        out
    }

    fn end_word(&mut self, out: &mut String, limit: usize) {
        if self.word.is_empty() {
            return;
        }
        if self.column == 0 && self.word.starts_with("```") {
            self.code = !self.code;
        }
        let word = width(&self.word);
        if !self.code && self.column > 0 && self.column + self.spaces + word > limit {
            out.push('\n');
            (self.column, self.spaces) = (0, 0);
        }
        out.extend(std::iter::repeat_n(' ', self.spaces));
        out.push_str(&self.word);
        self.column += self.spaces + word;
        self.spaces = 0;
        self.word.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrapped(text: &str, limit: Option<usize>, size: usize) -> String {
        let mut wrap = Wrap::new(limit);
        let letters: Vec<char> = text.chars().collect();
        let mut out: String = letters.chunks(size).map(|piece| wrap.push(&piece.iter().collect::<String>())).collect();
        out += &wrap.finish();
        out
    }

    #[test]
    fn lines_are_wrapped_between_words() {
        for (text, shown) in [
            ("", ""),
            ("one two three four", "one two\nthree four\n"),
            ("one  two\n\n  three", "one  two\n\n  three\n"),
            ("abcdefghijklmno p", "abcdefghij\nklmno p\n"),
            ("漢字漢字漢字", "漢字漢字漢\n字\n"),
            (
                "```\nlong code stays as it is\n```\nbut text does not",
                "```\nlong code stays as it is\n```\nbut text\ndoes not\n",
            ),
        ] {
            assert_eq!(wrapped(text, Some(10), 3), shown, "{text}");
        }
        assert_eq!(wrapped("one two three four", None, 3), "one two three four\n");
    }

    proptest! {
        #[test]
        fn wrapping_does_not_depend_on_chunks_and_lines_fit(text in "[ab \n漢]{0,60}", size in 1usize..20) {
            let whole = wrapped(&text, Some(10), 100);
            prop_assert_eq!(&wrapped(&text, Some(10), size), &whole);
            let letters = |text: &str| text.replace([' ', '\n'], "");
            prop_assert_eq!(letters(&whole), letters(&text));
            for line in whole.lines() {
                prop_assert!(width(line.trim_start()) <= 10, "{:?}", line);
            }
        }
    }
}
