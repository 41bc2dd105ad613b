//! [`Screen`]: the output stream of a terminal. Printed text stays; a status line may be drawn below it and erased.

use std::env;
use std::fs::File;
use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use rustix::fd::AsFd;
use rustix::termios::tcgetwinsize;

use crate::show::{Paint, Style};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// At a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    Always,
    Never,
}

/// Assumed width if the terminal reports none.
const USUAL_WIDTH: usize = 80;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Moves to the beginning of the line and erases it.
const ERASE: &str = "\r\u{1b}[K";

/// A stream that can be written to and measured.
trait Output: Write + AsFd {}

impl<T: Write + AsFd> Output for T {}

pub struct Screen {
    out: Box<dyn Output>,
    style: Style,
    is_terminal: bool,
    colour: bool,
    /// Whether the cursor is at the beginning of a line.
    fresh: bool,
    /// Whether the status line is drawn.
    spinning: bool,
    frame: usize,
}

impl Screen {
    pub fn stdout(color: Color) -> Self {
        Self::new(io::stdout(), color)
    }

    pub fn stderr(color: Color) -> Self {
        Self::new(io::stderr(), color)
    }

    /// The terminal of this process, also if stdout and stderr are pipes or files. `None` if it has none.
    pub fn terminal(color: Color) -> Option<Self> {
        if io::stderr().is_terminal() {
            return Some(Self::stderr(color));
        }
        let terminal = File::options().write(true).open("/dev/tty").ok()?;
        Some(Self::new(terminal, color)).filter(Self::is_terminal)
    }

    fn new(out: impl Output + IsTerminal + 'static, color: Color) -> Self {
        let is_terminal = out.is_terminal();
        let colour = in_colour(color, is_terminal, |name| env::var(name).ok());
        let style = Style::new(is_terminal.then(|| width(&out)), colour);
        Self { out: Box::new(out), style, is_terminal, colour, fresh: true, spinning: false, frame: 0 }
    }

    /// Returns the current style: the window may have been resized.
    pub fn measure(&mut self) -> Style {
        if self.is_terminal {
            self.style = Style::new(Some(width(&self.out)), self.colour);
        }
        self.style
    }

    pub fn style(&self) -> Style {
        self.style
    }

    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    pub fn print(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.rest()?;
        self.out.write_all(text.as_bytes())?;
        self.fresh = text.ends_with('\n');
        self.out.flush()
    }

    /// Notes that the terminal echoed a line end.
    pub fn line_entered(&mut self) {
        self.fresh = true;
    }

    /// Draws the status line, at a terminal and if the cursor is at the beginning of a line.
    pub fn spin(&mut self, status: &str) -> io::Result<()> {
        if !self.is_terminal || !self.fresh {
            return Ok(());
        }
        self.frame = (self.frame + 1) % FRAMES.len();
        let line = format!("{} {status}", FRAMES[self.frame]);
        write!(self.out, "{ERASE}{}", self.style.paint(Paint::Dim, &line))?;
        self.spinning = true;
        self.out.flush()
    }

    /// Erases the status line.
    pub fn rest(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.spinning) {
            self.out.write_all(ERASE.as_bytes())?;
            self.out.flush()?;
        }
        Ok(())
    }
}

fn width(out: &impl AsFd) -> usize {
    match tcgetwinsize(out) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => USUAL_WIDTH,
    }
}

/// See <https://no-color.org>.
fn in_colour(color: Color, is_terminal: bool, env: impl Fn(&str) -> Option<String>) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let refused = env("NO_COLOR").is_some_and(|value| !value.is_empty());
            is_terminal && !refused && env("TERM").as_deref() != Some("dumb")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_depends_on_terminal_and_no_color() {
        let check = |color, is_terminal, variables: &[(&str, &str)], expected| {
            let env = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into());
            assert_eq!(in_colour(color, is_terminal, env), expected, "{color:?} {is_terminal} {variables:?}");
        };
        check(Color::Auto, true, &[("TERM", "xterm")], true);
        check(Color::Auto, true, &[], true);
        check(Color::Auto, false, &[("TERM", "xterm")], false);
        check(Color::Auto, true, &[("NO_COLOR", "1")], false);
        check(Color::Auto, true, &[("NO_COLOR", "")], true);
        check(Color::Auto, true, &[("TERM", "dumb")], false);
        check(Color::Always, false, &[("NO_COLOR", "1")], true);
        check(Color::Never, true, &[], false);
    }
}
