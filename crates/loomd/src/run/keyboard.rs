//! Lines that somebody types, whatever stdin is: they are read from the terminal itself. Nothing is read before the
//! first question, what was typed before a question is no answer to it, and secrets are not shown while they are typed.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::thread;

use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, isatty, tcflush, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

/// Lines that were typed and not taken. People type one per question.
const TYPED: usize = 16;

pub struct Keyboard {
    terminal: File,
    lines: Option<mpsc::Receiver<String>>,
    /// How the terminal was before it began to hide what is typed.
    usual: Option<Termios>,
}

impl Keyboard {
    /// `None` when this process has no terminal.
    pub fn open() -> Option<Self> {
        let terminal = File::open("/dev/tty").ok().filter(|file| isatty(file))?;
        Some(Self { terminal, lines: None, usual: None })
    }

    /// Forgets what was typed so far, and listens. Fails where a secret would be seen.
    pub fn begin(&mut self, secret: bool) -> io::Result<()> {
        self.end();
        if secret {
            self.hide()?;
        }
        _ = tcflush(&self.terminal, QueueSelector::IFlush);
        match &mut self.lines {
            Some(lines) => while lines.try_recv().is_ok() {},
            None => self.lines = self.terminal.try_clone().ok().map(read),
        }
        Ok(())
    }

    /// The next line; `None` at the end of the input. Dropping the future loses nothing.
    pub async fn line(&mut self) -> Option<String> {
        let line = self.lines.as_mut()?.recv().await;
        self.end();
        line
    }

    /// Shows again what is typed.
    pub fn end(&mut self) {
        if let Some(usual) = self.usual.take() {
            _ = tcsetattr(&self.terminal, OptionalActions::Now, &usual);
        }
    }

    /// Shows no more of what is typed than the end of the line.
    fn hide(&mut self) -> io::Result<()> {
        let usual = tcgetattr(&self.terminal)?;
        let mut hidden = usual.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        hidden.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(&self.terminal, OptionalActions::Now, &hidden)?;
        self.usual = Some(usual);
        Ok(())
    }
}

/// The terminal outlives us.
impl Drop for Keyboard {
    fn drop(&mut self) {
        self.end();
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
