//! What was found, section by section.

use std::io;

use crate::run::Screen;
use crate::show::Paint;

pub enum Finding {
    Good(String),
    /// Works, but somebody may want to know.
    Odd(String),
    /// No turn can run like this.
    Bad(String),
}

pub struct Report {
    screen: Screen,
    well: bool,
}

impl Report {
    pub fn new(screen: Screen) -> Self {
        Self { screen, well: true }
    }

    pub fn section(&mut self, title: &str, findings: Vec<Finding>) -> io::Result<()> {
        let style = self.screen.style();
        let mut text = format!("{}\n", style.paint(Paint::Bold, title));
        for finding in findings {
            let (mark, paint, words) = match finding {
                Finding::Good(words) => ("✓", Paint::Green, words),
                Finding::Odd(words) => ("!", Paint::Yellow, words),
                Finding::Bad(words) => {
                    self.well = false;
                    ("✗", Paint::Red, words)
                }
            };
            text += &format!("  {} {words}\n", style.paint(paint, mark));
        }
        self.screen.print(&text)
    }

    /// Whether nothing bad was found.
    pub fn is_well(&self) -> bool {
        self.well
    }
}
