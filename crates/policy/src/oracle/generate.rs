//! Generated lines, the same ones for the same seed.

use std::fmt::Write as _;

use super::heredocs::*;
use super::vocabulary::*;

/// A deterministic generator of random numbers.
pub(super) struct Numbers(pub u64);

impl Numbers {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    pub(super) fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// Generates lines. In a wild line every piece may be one that makes the line opaque.
pub(super) struct Generator {
    numbers: Numbers,
    wild: bool,
}

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self { numbers: Numbers(seed), wild: false }
    }

    fn of(&mut self, tame: &[&'static str], wild: &[&'static str]) -> &'static str {
        if self.wild && self.numbers.one_in(5) { self.numbers.of(wild) } else { self.numbers.of(tame) }
    }

    fn command(&mut self, line: &mut String) {
        line.push_str(self.of(NAMES, WILD_NAMES));
        if self.wild && self.numbers.one_in(12) {
            line.push_str(self.of(PIECES, WILD_PIECES));
        }
        for _ in 0..self.numbers.below(5) {
            line.push_str(if self.numbers.one_in(3) { self.of(BLANKS, WILD_BLANKS) } else { " " });
            for _ in 0..1 + self.numbers.below(3) {
                line.push_str(self.of(PIECES, WILD_PIECES));
            }
        }
    }

    pub(super) fn line(&mut self) -> String {
        self.wild = self.numbers.one_in(2);
        let mut line = String::new();
        if self.numbers.one_in(10) {
            line.push_str(self.of(BLANKS, WILD_BLANKS));
        }
        if self.numbers.one_in(5) {
            line.push_str(self.of(NAMES, WILD_NAMES));
            for _ in 0..self.numbers.below(3) {
                line.push_str(self.numbers.of(&[" a", " -rf", " --x", " é", " a=b", " 1", " -"]));
            }
            let sign = if self.wild {
                self.numbers.of(&["<<", " 2<<", " <<<", "\t<<-\t", " <<\\\n"])
            } else {
                self.numbers.of(&[" <<", " <<-", " << "])
            };
            let (delimiter, after) = (self.of(DELIMITERS, WILD_DELIMITERS), self.of(AFTER, WILD_AFTER));
            let _ = writeln!(line, "{sign}{delimiter}{after}");
            for _ in 0..self.numbers.below(3) {
                line.push_str(self.of(BODIES, WILD_BODIES));
            }
            line.push_str(self.of(ENDINGS, WILD_ENDINGS));
            return line;
        }
        self.command(&mut line);
        for _ in 0..self.numbers.below(4) {
            line.push_str(self.of(OPERATORS, WILD_OPERATORS));
            self.command(&mut line);
        }
        if self.numbers.one_in(6) {
            line.push_str(self.of(OPERATORS, WILD_OPERATORS));
        }
        line
    }
}
