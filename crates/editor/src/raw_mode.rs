//! [`RawMode`]: a terminal that sends every key, and marks pastes.

use std::fs::File;
use std::io::{self, Write};

use rustix::io::retry_on_intr;
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios, tcgetattr,
    tcgetwinsize, tcsetattr,
};

const PASTES_MARKED: &str = "\u{1b}[?2004h";
const PASTES_UNMARKED: &str = "\u{1b}[?2004l";
const SHOW_CURSOR: &str = "\u{1b}[?25h";

/// The columns and rows that are assumed if the terminal reports none.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// A terminal whose keys are read one by one. Line ends in the output are still processed. Its modes are restored
/// when this is dropped.
pub struct RawMode {
    terminal: File,
    usual: Termios,
    is_raw: bool,
}

impl RawMode {
    /// Enters raw mode. Fails if the file is no terminal.
    pub fn enter(terminal: File) -> io::Result<Self> {
        let usual = tcgetattr(&terminal)?;
        let mut raw = Self { terminal, usual, is_raw: false };
        raw.resume()?;
        Ok(raw)
    }

    /// Enters raw mode again after [`suspend`](Self::suspend), or after another program has changed the modes.
    pub fn resume(&mut self) -> io::Result<()> {
        let mut raw = self.usual.clone();
        raw.input_modes.remove(
            InputModes::BRKINT
                | InputModes::ICRNL
                | InputModes::INLCR
                | InputModes::IGNCR
                | InputModes::ISTRIP
                | InputModes::IXON,
        );
        raw.output_modes.insert(OutputModes::OPOST | OutputModes::ONLCR);
        raw.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::IEXTEN | LocalModes::ISIG);
        raw.control_modes.remove(ControlModes::CSIZE | ControlModes::PARENB);
        raw.control_modes.insert(ControlModes::CS8);
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        // A process in the background is stopped here until the shell continues it in the foreground.
        retry_on_intr(|| tcsetattr(&self.terminal, OptionalActions::Drain, &raw))?;
        self.is_raw = true;
        self.write(PASTES_MARKED)
    }

    /// Restores the modes that the terminal had before.
    pub fn suspend(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_raw) {
            return Ok(());
        }
        let written = self.write(&format!("{PASTES_UNMARKED}{SHOW_CURSOR}"));
        retry_on_intr(|| tcsetattr(&self.terminal, OptionalActions::Drain, &self.usual))?;
        written
    }

    /// Whether the modes are those of raw mode.
    pub fn is_raw(&self) -> bool {
        self.is_raw
    }

    pub fn write(&mut self, text: &str) -> io::Result<()> {
        self.terminal.write_all(text.as_bytes())?;
        self.terminal.flush()
    }

    /// Another handle of the terminal, to read keys from.
    pub fn reader(&self) -> io::Result<File> {
        self.terminal.try_clone()
    }

    /// The columns and rows of the terminal.
    pub fn size(&self) -> (usize, usize) {
        match tcgetwinsize(&self.terminal) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
            _ => USUAL_SIZE,
        }
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        _ = self.suspend();
    }
}
