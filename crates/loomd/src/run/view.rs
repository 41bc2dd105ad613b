//! Who a turn is shown to: people, or a program that reads a line per event.

use std::io::{self, Write};

use loomd_client::protocol::{ServerNotification, ThreadItem, TurnStatus, encode_notification};
use loomd_client::{Event, EventKind, Thread};

use super::question::Question;
use super::screen::{Color, Screen};
use crate::show::Renderer;

/// Sees all that happens from the handshake on.
pub trait View {
    fn event(&mut self, event: &Event) -> io::Result<()>;

    /// Something that the server does not say.
    fn warn(&mut self, word: &str, text: &str) -> io::Result<()>;

    /// Shows a question. Only asked of those who [can ask](Self::can_ask).
    fn show_question(&mut self, _question: &Question) -> io::Result<()> {
        Ok(())
    }

    /// Says that what was typed is no answer, and waits for another.
    fn show_hint(&mut self, _question: &Question) -> io::Result<()> {
        Ok(())
    }

    /// Whether somebody could answer.
    fn is_interactive(&self) -> bool {
        false
    }

    /// Somebody pressed the enter key.
    fn line_entered(&mut self) {}

    /// Called many times a second while nothing else happens.
    fn tick(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A line of JSON per notification, as the server sends it. Other words go to stderr.
pub struct JsonView<W> {
    out: W,
}

impl<W: Write> JsonView<W> {
    pub fn new(out: W) -> Self {
        Self { out }
    }
}

impl<W: Write> View for JsonView<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let mut line = match &event.kind {
            EventKind::Notification(notification) => notification.encode()?,
            EventKind::Other { method, params } => encode_notification(method, Some(params))?,
            _ => return Ok(()),
        };
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.out.flush()
    }

    fn warn(&mut self, word: &str, text: &str) -> io::Result<()> {
        writeln!(io::stderr(), "{word}: {text}")
    }
}

/// Text for people. At a terminal all of it goes to stdout. Where stdout is a pipe or a file, it gets the last message
/// of the agent and nothing else, and the rest goes to stderr.
pub struct TextView {
    thread_id: String,
    screen: Screen,
    renderer: Renderer,
    /// Where the last message goes, if not to the screen.
    answer: Option<Box<dyn Write>>,
    /// A message that may be the last one.
    held: Option<Event>,
}

impl TextView {
    pub fn new(thread: &Thread, color: Color) -> Self {
        let stdout = Screen::stdout(color);
        let (screen, answer): (_, Option<Box<dyn Write>>) = match stdout.is_terminal() {
            true => (stdout, None),
            false => (Screen::stderr(color), Some(Box::new(io::stdout()))),
        };
        let renderer = Renderer::new(screen.style()).in_folder(&thread.settings().cwd);
        Self { thread_id: thread.id().to_owned(), screen, renderer, answer, held: None }
    }

    /// People make windows wider and narrower.
    fn fit(&mut self) {
        self.renderer.restyle(self.screen.measure());
    }

    /// The last words, for whoever wants to go on.
    pub fn remark(&mut self, text: &str) -> io::Result<()> {
        let text = self.renderer.remark(text);
        self.screen.print(&text)
    }

    fn show(&mut self, event: &Event) -> io::Result<()> {
        match event.notification() {
            Some(notification) => {
                let text = self.renderer.show(notification);
                self.screen.print(&text)
            }
            None => Ok(()),
        }
    }

    /// The message was not the last one.
    fn release(&mut self) -> io::Result<()> {
        match self.held.take() {
            Some(held) => self.show(&held),
            None => Ok(()),
        }
    }
}

impl View for TextView {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.fit();
        // What agents that this one started say is theirs.
        if event.thread_id.as_ref().is_some_and(|thread| *thread != self.thread_id) {
            return Ok(());
        }
        let (Some(notification), Some(answer)) = (event.notification(), &mut self.answer) else {
            return self.show(event);
        };
        match notification {
            ServerNotification::AgentMessageDelta(_) => return Ok(()),
            // Its text is said again, as a message.
            ServerNotification::ItemCompleted(completed)
                if matches!(completed.item, ThreadItem::ExitedReviewMode { .. }) =>
            {
                return Ok(());
            }
            ServerNotification::ItemCompleted(completed) => {
                let is_message = matches!(completed.item, ThreadItem::AgentMessage { .. });
                self.release()?;
                if is_message {
                    self.held = Some(event.clone());
                    return Ok(());
                }
            }
            ServerNotification::ItemStarted(started) if !matches!(started.item, ThreadItem::AgentMessage { .. }) => {
                self.release()?;
            }
            ServerNotification::TurnCompleted(completed) if completed.turn.status == TurnStatus::Completed => {
                if let Some(text) = self.held.take().as_ref().and_then(message_text) {
                    answer.write_all(text.as_bytes())?;
                    answer.write_all(if text.ends_with('\n') { b"" } else { b"\n" })?;
                    answer.flush()?;
                }
            }
            ServerNotification::TurnCompleted(_) => self.release()?,
            _ => {}
        }
        self.show(event)
    }

    fn warn(&mut self, word: &str, text: &str) -> io::Result<()> {
        let text = self.renderer.warn(word, text);
        self.screen.print(&text)
    }

    fn show_question(&mut self, question: &Question) -> io::Result<()> {
        self.release()?;
        let text = question.show(|asked| self.renderer.question(asked));
        self.screen.print(&text)
    }

    fn show_hint(&mut self, question: &Question) -> io::Result<()> {
        self.screen.print(&format!("  {}\n> ", question.hint()))
    }

    fn is_interactive(&self) -> bool {
        self.screen.is_terminal()
    }

    fn line_entered(&mut self) {
        self.screen.line_entered();
    }

    fn tick(&mut self) -> io::Result<()> {
        self.fit();
        self.screen.spin(&self.renderer.status())
    }
}

/// Nobody is left with half a line.
impl Drop for TextView {
    fn drop(&mut self) {
        _ = self.screen.rest();
    }
}

fn message_text(event: &Event) -> Option<&str> {
    match event.notification()? {
        ServerNotification::ItemCompleted(completed) => match &completed.item {
            ThreadItem::AgentMessage { text, .. } => Some(text),
            _ => None,
        },
        _ => None,
    }
}
