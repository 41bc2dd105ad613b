//! [`Keyboard`]: lines typed at the terminal, read from `/dev/tty` whatever stdin is. Nothing is read before the
//! first question, input typed before a question is discarded, and secrets are not echoed.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::thread;

use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, isatty, tcflush, tcgetattr, tcgetpgrp, tcsetattr,
};
use tokio::sync::mpsc;

/// Capacity of the queue of typed lines.
const TYPED: usize = 16;

pub struct Keyboard {
    terminal: File,
    lines: Option<mpsc::Receiver<String>>,
    /// The terminal's modes before echo was switched off.
    usual: Option<Termios>,
}

impl Keyboard {
    /// `None` if this process has no terminal, or runs in the background, where reading would stop it.
    pub fn open() -> Option<Self> {
        let terminal = File::open("/dev/tty").ok().filter(|file| isatty(file))?;
        let in_foreground = tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp());
        in_foreground.then_some(Self { terminal, lines: None, usual: None })
    }

    /// Starts reading, and keeps what was typed before.
    pub fn listen(&mut self) {
        if self.lines.is_none() {
            self.lines = self.terminal.try_clone().ok().map(read);
        }
    }

    /// Discards earlier input and starts reading. Fails if echo cannot be switched off for a secret.
    pub fn begin(&mut self, secret: bool) -> io::Result<()> {
        self.end();
        if secret {
            self.hide()?;
        }
        _ = tcflush(&self.terminal, QueueSelector::IFlush);
        while self.lines.as_mut().is_some_and(|lines| lines.try_recv().is_ok()) {}
        self.listen();
        Ok(())
    }

    /// The next line; `None` at the end of the input. Cancel-safe.
    pub async fn line(&mut self) -> Option<String> {
        let line = self.lines.as_mut()?.recv().await;
        self.end();
        line
    }

    /// Switches echo on again.
    pub fn end(&mut self) {
        if let Some(usual) = self.usual.take() {
            _ = tcsetattr(&self.terminal, OptionalActions::Now, &usual);
        }
    }

    /// Switches echo off, except for line ends.
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

/// Restores the terminal's modes.
impl Drop for Keyboard {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads lines on a thread, which cannot be woken and ends with the process.
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
