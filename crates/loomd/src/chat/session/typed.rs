//! What the user types, and signals.

use anyhow::Result;
use loomd_client::protocol::FuzzyFileSearchParams;
use loomd_editor::{Edit, Key, MAX_PASTE};
use rustix::process::{Signal as Kill, getpid, kill_process};

use super::signals::Signal;
use super::{Exit, Session};
use crate::chat::commands::{Line, parse};
use crate::chat::keyboard::Typed;
use crate::chat::picker::Picked;
use crate::chat::requests::Outcome;
use crate::show::lines;

/// A file search replaces the one before it.
const SEARCH: &str = "chat";

/// How many lines Ctrl-O shows.
const UNFOLDED: usize = 2000;

impl Session {
    pub(super) fn typed(&mut self, typed: Typed) -> Result<()> {
        match typed {
            Typed::Keys(keys) => {
                for key in keys {
                    self.key(key)?;
                    if self.exit.is_some() {
                        break;
                    }
                }
                self.complete();
                Ok(())
            }
            Typed::Line(line) => {
                self.surface.line_entered();
                self.prompted = false;
                self.line(line)
            }
            Typed::EndOfInput => {
                self.surface.line_entered();
                self.end_of_input()
            }
            Typed::Closed => {
                self.exit = Some(Exit::Normal);
                Ok(())
            }
        }
    }

    pub(super) fn signal(&mut self, signal: Signal) -> Result<()> {
        match signal {
            Signal::Interrupt => self.interrupt_key(),
            Signal::End => {
                self.exit = Some(Exit::Normal);
                Ok(())
            }
            Signal::Suspend => self.suspend(),
            // The process may have been stopped without notice.
            Signal::Continue => {
                self.surface.resume()?;
                self.renderer.restyle(self.surface.style());
                Ok(())
            }
            // The next frame has the new size.
            Signal::Resize => Ok(()),
        }
    }

    fn key(&mut self, key: Key) -> Result<()> {
        self.hint = None;
        if key != Key::Interrupt {
            self.leaving = false;
        }
        match key {
            Key::Suspend => return self.suspend(),
            Key::ClearScreen => return Ok(self.surface.clear()?),
            Key::Interrupt => return self.interrupt_key(),
            Key::Unfold => return self.unfold(),
            Key::PasteTooLong => {
                self.hint = Some(format!("the paste is longer than {} KiB and was left out", MAX_PASTE / 1024));
                return Ok(());
            }
            _ => {}
        }
        if let Some(picker) = &mut self.picker {
            let picked = picker.press(key);
            return self.picked(picked);
        }
        if self.question.is_none() && self.editor.search().is_none() && self.menu_key(&key)? {
            return Ok(());
        }
        match self.editor.press(key) {
            Edit::Submitted(line) if self.question.is_some() => self.answer(Some(&line)),
            Edit::Submitted(text) => self.submit(text),
            Edit::Unused(Key::EndOfInput) => self.end_of_input(),
            Edit::Edited | Edit::Unused(_) => Ok(()),
        }
    }

    /// Returns whether the menu below the input has used the key.
    fn menu_key(&mut self, key: &Key) -> Result<bool> {
        let Some(menu) = self.completion.menu() else { return Ok(false) };
        match key {
            Key::Up | Key::BackTab => menu.up(),
            Key::Down => menu.down(),
            Key::Escape => self.completion.close(),
            Key::Tab => _ = self.completion.accept(self.editor.text_mut()),
            Key::Enter => {
                if self.completion.accept(self.editor.text_mut()) {
                    let text = self.editor.take().expanded();
                    self.submit(text)?;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A line of a plain terminal.
    fn line(&mut self, line: String) -> Result<()> {
        self.leaving = false;
        if self.question.is_some() {
            return self.answer(Some(&line));
        }
        if let Some(picker) = &self.picker {
            let picked = picker.choose(&line);
            return self.picked(picked);
        }
        self.submit(line)
    }

    fn picked(&mut self, picked: Picked) -> Result<()> {
        match picked {
            Picked::Open => Ok(()),
            Picked::Cancelled => {
                self.picker = None;
                Ok(())
            }
            Picked::Chosen(command) => {
                self.picker = None;
                self.execute(command)
            }
        }
    }

    fn submit(&mut self, text: String) -> Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let line = match parse(&text) {
            Ok(line) => line,
            Err(message) => {
                self.give_back(Some(text).filter(|_| self.surface.is_live()));
                return self.warn("error", &message);
            }
        };
        let entry = text.trim_end();
        self.editor.remember(entry);
        let (history, id, entry) = (self.history.clone(), self.thread.id().to_owned(), entry.to_owned());
        tokio::task::spawn_blocking(move || history.append(&id, &entry));
        match line {
            Line::Prompt(text) => self.send_prompt(text),
            Line::Shell(command) => self.run_shell(command),
            Line::Command(command) => {
                self.echo(text.trim())?;
                self.execute(command)
            }
        }
    }

    /// Ctrl-D, with nothing typed.
    fn end_of_input(&mut self) -> Result<()> {
        if self.question.is_some() {
            return self.answer(None);
        }
        if self.activity.is_idle() {
            self.exit = Some(Exit::Normal);
            return Ok(());
        }
        self.tell("a turn is running; Ctrl-C interrupts it")
    }

    /// Ctrl-C.
    fn interrupt_key(&mut self) -> Result<()> {
        if self.editor.search().is_some() {
            self.editor.press(Key::Interrupt);
            return Ok(());
        }
        if self.picker.take().is_some() {
            return Ok(());
        }
        if let Some((name, task)) = self.request.take() {
            task.abort();
            return self.tell(&format!("cancelled: {name}"));
        }
        if !self.activity.is_idle() {
            self.interrupt();
            return Ok(());
        }
        if self.question.is_some() {
            return self.answer(None);
        }
        if !self.editor.text().is_empty() {
            self.editor.text_mut().clear();
            return Ok(());
        }
        if std::mem::replace(&mut self.leaving, true) {
            self.exit = Some(Exit::Normal);
            return Ok(());
        }
        self.tell("press Ctrl-C again to leave")
    }

    /// A short message that need not stay.
    pub(super) fn tell(&mut self, text: &str) -> Result<()> {
        if self.surface.is_live() {
            self.hint = Some(text.to_owned());
            return Ok(());
        }
        self.remark(text)
    }

    /// Stops the process, as the shell expects of Ctrl-Z, and goes on when the shell continues it.
    fn suspend(&mut self) -> Result<()> {
        self.surface.suspend()?;
        self.prompted = false;
        // The signal that continues the process takes the terminal again.
        Ok(kill_process(getpid(), Kill::STOP)?)
    }

    /// Shows the whole output of the last command.
    fn unfold(&mut self) -> Result<()> {
        let Some((command, output)) = &self.output else {
            return self.tell("no command has ended yet");
        };
        let mut all = lines(output);
        let hidden = all.len().saturating_sub(UNFOLDED);
        all.truncate(UNFOLDED);
        let mut text = format!("$ {}\n", lines(command).join(" "));
        all.iter().for_each(|line| text += &format!("{line}\n"));
        if hidden > 0 {
            text += &format!("… {hidden} more lines\n");
        }
        let text = self.renderer.block(&text);
        self.print(&text)
    }

    /// Lets the menu follow what is typed.
    fn complete(&mut self) {
        if self.question.is_some() || self.picker.is_some() {
            return;
        }
        let Some(query) = self.completion.follow(self.editor.text()) else { return };
        if let Some(search) = self.search.take() {
            search.abort();
        }
        let params = FuzzyFileSearchParams {
            query: query.clone(),
            roots: vec![self.cwd.clone()],
            cancellation_token: Some(SEARCH.to_owned()),
        };
        let client = self.client.clone();
        let search = self.spawn(async move {
            // Without a result there is no menu.
            let files = client.fuzzy_file_search(params).await.map(|found| found.files).unwrap_or_default();
            Outcome::Files { query, files }
        });
        self.search = Some(search);
    }
}
