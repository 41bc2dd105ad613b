//! [`Surface`]: the terminal of a chat. A live one has a region at its end that is drawn again and again; a plain one,
//! without cursor movement (`TERM=dumb`), only gets lines.

use std::env;
use std::fs::File;
use std::io::{self, Write};

use loomd_editor::{Frame, RawMode, Region, text_width};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::keyboard::{self, Keyboard};
use crate::show::Style;

const TERMINAL: &str = "/dev/tty";

const CLEAR: &str = "\u{1b}[H\u{1b}[2J\u{1b}[3J";

/// The columns that are assumed if a plain terminal reports none.
const USUAL_WIDTH: usize = 80;

pub enum Surface {
    Live(LiveSurface),
    Plain(PlainSurface),
}

pub struct LiveSurface {
    raw: RawMode,
    region: Region,
    /// Complete lines that are not printed yet.
    printed: String,
    /// An incomplete line, which is a part of the region until it is complete.
    tail: String,
    size: (usize, usize),
    colour: bool,
}

pub struct PlainSurface {
    terminal: File,
    colour: bool,
    /// The modes before echo was switched off.
    usual: Option<Termios>,
    /// Whether the cursor is at the beginning of a line.
    fresh: bool,
}

impl Surface {
    pub fn open() -> io::Result<Self> {
        let terminal = File::options().read(true).write(true).open(TERMINAL)?;
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let is_dumb = variable("TERM").is_none_or(|term| term == "dumb");
        if is_dumb {
            return Ok(Self::Plain(PlainSurface { terminal, colour: false, usual: None, fresh: true }));
        }
        let raw = RawMode::enter(terminal)?;
        let size = raw.size();
        Ok(Self::Live(LiveSurface {
            raw,
            region: Region::new(size.0),
            printed: String::new(),
            tail: String::new(),
            size,
            colour: variable("NO_COLOR").is_none(),
        }))
    }

    /// Starts to read what is typed.
    pub fn keyboard(&self) -> io::Result<Keyboard> {
        match self {
            Self::Live(live) => keyboard::keys(live.raw.reader()?),
            Self::Plain(plain) => keyboard::lines(plain.terminal.try_clone()?),
        }
    }

    pub fn is_live(&self) -> bool {
        matches!(self, Self::Live(_))
    }

    /// The style of printed text. One column stays free, as in the region.
    pub fn style(&self) -> Style {
        match self {
            Self::Live(live) => Style::new(Some(live.size.0.saturating_sub(1)), live.colour),
            Self::Plain(plain) => Style::new(Some(plain.width().saturating_sub(1)), plain.colour),
        }
    }

    /// Prints text above the region. It is shown by the next [`draw`](Self::draw).
    pub fn print(&mut self, text: &str) -> io::Result<()> {
        match self {
            Self::Live(live) => {
                live.tail += text;
                if let Some(end) = live.tail.rfind('\n') {
                    live.printed.extend(live.tail.drain(..=end));
                }
                Ok(())
            }
            Self::Plain(plain) => plain.print(text),
        }
    }

    /// The incomplete line that was printed last.
    pub fn tail(&self) -> &str {
        match self {
            Self::Live(live) => &live.tail,
            Self::Plain(_) => "",
        }
    }

    /// Draws the region of a live surface.
    pub fn draw(&mut self, frame: impl FnOnce((usize, usize)) -> Frame) -> io::Result<()> {
        let Self::Live(live) = self else { return Ok(()) };
        if !live.raw.is_raw() {
            // The terminal is the shell's.
            return Ok(());
        }
        let frame = frame(live.size);
        let bytes = live.region.draw(&std::mem::take(&mut live.printed), frame);
        if bytes.is_empty() { Ok(()) } else { live.raw.write(&bytes) }
    }

    /// Shows where a plain surface waits for a line.
    pub fn prompt(&mut self, prompt: &str) -> io::Result<()> {
        match self {
            Self::Live(_) => Ok(()),
            Self::Plain(plain) => plain.print(prompt),
        }
    }

    /// Notes that the terminal echoed a line end.
    pub fn line_entered(&mut self) {
        if let Self::Plain(plain) = self {
            plain.fresh = true;
        }
    }

    /// Switches the echo of a plain surface off, for a secret, or on again.
    pub fn hide_input(&mut self, hide: bool) -> io::Result<()> {
        match self {
            Self::Live(_) => Ok(()),
            Self::Plain(plain) => plain.hide_input(hide),
        }
    }

    /// Follows the size of the window. Returns whether it has changed.
    pub fn resize(&mut self) -> bool {
        let Self::Live(live) = self else { return false };
        let size = live.raw.size();
        if size == live.size {
            return false;
        }
        live.size = size;
        live.region.resize(size.0);
        true
    }

    /// Erases the screen and what was scrolled out of it.
    pub fn clear(&mut self) -> io::Result<()> {
        let Self::Live(live) = self else { return Ok(()) };
        live.region.reset();
        live.raw.write(CLEAR)
    }

    /// Leaves the terminal to the shell: prints what is left, erases the region and restores the modes.
    pub fn suspend(&mut self) -> io::Result<()> {
        match self {
            Self::Live(live) => {
                let mut bytes = live.region.erase();
                bytes += &std::mem::take(&mut live.printed);
                if text_width(&live.tail) > 0 {
                    bytes += &format!("{}\n", std::mem::take(&mut live.tail));
                }
                live.raw.write(&bytes)?;
                live.raw.suspend()
            }
            Self::Plain(plain) => {
                plain.hide_input(false)?;
                if plain.fresh { Ok(()) } else { plain.print("\n") }
            }
        }
    }

    /// Takes the terminal again after [`suspend`](Self::suspend) or after the process was stopped.
    pub fn resume(&mut self) -> io::Result<()> {
        let Self::Live(live) = self else { return Ok(()) };
        live.raw.resume()?;
        live.region.reset();
        live.size = live.raw.size();
        live.region.resize(live.size.0);
        Ok(())
    }
}

impl PlainSurface {
    fn print(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.fresh = text.ends_with('\n');
        self.terminal.write_all(text.as_bytes())?;
        self.terminal.flush()
    }

    fn width(&self) -> usize {
        match tcgetwinsize(&self.terminal) {
            Ok(size) if size.ws_col > 0 => size.ws_col.into(),
            _ => USUAL_WIDTH,
        }
    }

    fn hide_input(&mut self, hide: bool) -> io::Result<()> {
        if !hide {
            if let Some(usual) = self.usual.take() {
                tcsetattr(&self.terminal, OptionalActions::Now, &usual)?;
            }
            return Ok(());
        }
        let usual = tcgetattr(&self.terminal)?;
        let mut hidden = usual.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        hidden.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(&self.terminal, OptionalActions::Now, &hidden)?;
        self.usual.get_or_insert(usual);
        Ok(())
    }
}

/// Restores the modes of the terminal.
impl Drop for Surface {
    fn drop(&mut self) {
        _ = self.suspend();
    }
}
