//! The result of `loomd doctor`, section by section.

use std::io;

use crate::run::Screen;
use crate::show::Paint;

pub enum Finding {
    Pass(String),
    /// Works, but may be unintended.
    Warn(String),
    /// Prevents every turn.
    Fail(String),
}

pub struct DoctorReport {
    screen: Screen,
    well: bool,
}

impl DoctorReport {
    pub fn new(screen: Screen) -> Self {
        Self { screen, well: true }
    }

    pub fn section(&mut self, title: &str, findings: Vec<Finding>) -> io::Result<()> {
        let style = self.screen.style();
        let mut text = format!("{}\n", style.paint(Paint::Bold, title));
        for finding in findings {
            let (mark, paint, words) = match finding {
                Finding::Pass(words) => ("✓", Paint::Green, words),
                Finding::Warn(words) => ("!", Paint::Yellow, words),
                Finding::Fail(words) => {
                    self.well = false;
                    ("✗", Paint::Red, words)
                }
            };
            text += &format!("  {} {words}\n", style.paint(paint, mark));
        }
        self.screen.print(&text)
    }

    /// Whether no check failed.
    pub fn passed(&self) -> bool {
        self.well
    }
}
