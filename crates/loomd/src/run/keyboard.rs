//! Lines that somebody types, whatever stdin is: they are read from the terminal itself. Nothing is read before the
//! first question, and what was typed before a question is no answer to it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::thread;

use rustix::termios::{QueueSelector, isatty, tcflush};
use tokio::sync::mpsc;

/// Lines that were typed and not taken. People type one per question.
const TYPED: usize = 16;

pub struct Keyboard {
    terminal: File,
    lines: Option<mpsc::Receiver<String>>,
}

impl Keyboard {
    /// `None` when this process has no terminal.
    pub fn open() -> Option<Self> {
        let terminal = File::open("/dev/tty").ok().filter(|file| isatty(file))?;
        Some(Self { terminal, lines: None })
    }

    /// Forgets what was typed so far.
    pub fn forget(&mut self) {
        _ = tcflush(&self.terminal, QueueSelector::IFlush);
        match &mut self.lines {
            Some(lines) => while lines.try_recv().is_ok() {},
            None => self.lines = self.terminal.try_clone().ok().map(read),
        }
    }

    /// The next line; `None` at the end of the input. Dropping the future loses nothing.
    pub async fn line(&mut self) -> Option<String> {
        self.lines.as_mut()?.recv().await
    }
}

/// On a thread of its own, which cannot be woken and ends with the process.
fn read(terminal: File) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(TYPED);
    thread::spawn(move || {
        for line in BufReader::new(terminal).lines() {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}
