//! [`View`]: how a turn is shown, as text for people or as one line per event for programs.

use std::io::{self, Write};

use loomd_client::protocol::{ServerNotification, ThreadItem, TurnStatus, encode_notification};
use loomd_client::{Event, EventKind, Thread};

use super::question::Question;
use super::screen::{Color, Screen};
use crate::show::Renderer;

/// Receives all events from the handshake on.
pub trait View {
    fn event(&mut self, event: &Event) -> io::Result<()>;

    /// Shows a message of this program.
    fn warn(&mut self, word: &str, text: &str) -> io::Result<()>;

    /// Shows a question. Called only if [`is_interactive`](Self::is_interactive).
    fn show_question(&mut self, _question: &Question) -> io::Result<()> {
        Ok(())
    }

    /// Shows that a line was invalid, and waits for another.
    fn show_hint(&mut self, _question: &Question) -> io::Result<()> {
        Ok(())
    }

    /// Whether questions can be shown.
    fn is_interactive(&self) -> bool {
        false
    }

    /// Notes that the terminal echoed a line end.
    fn line_entered(&mut self) {}

    /// Called ten times a second while no event is shown.
    fn tick(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Shows nothing.
pub struct NoView;

impl View for NoView {
    fn event(&mut self, _: &Event) -> io::Result<()> {
        Ok(())
    }

    fn warn(&mut self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }
}

/// Shows questions at the terminal, beside output that goes elsewhere.
struct QuestionScreen {
    screen: Screen,
    renderer: Renderer,
}

impl QuestionScreen {
    /// `None` if this process has no terminal.
    fn open(thread: &Thread, color: Color) -> Option<Self> {
        let screen = Screen::terminal(color)?;
        let renderer = Renderer::new(screen.style()).in_folder(&thread.settings().cwd);
        Some(Self { screen, renderer })
    }

    /// Follows the changes that a question may be about.
    fn follow(&mut self, event: &Event) {
        if let Some(notification) = event.notification() {
            self.renderer.show(notification);
        }
    }

    fn show(&mut self, question: &Question) -> io::Result<()> {
        self.renderer.restyle(self.screen.measure());
        let text = question.show(|asked| self.renderer.question(asked));
        self.screen.print(text.trim_start_matches('\n'))
    }

    fn show_hint(&mut self, question: &Question) -> io::Result<()> {
        self.screen.print(&format!("  {}\n> ", question.hint()))
    }
}

/// Prints each notification as one line of JSON, as received. Messages of this program go to stderr, and questions to
/// the terminal.
pub struct JsonView<W> {
    out: W,
    questions: Option<QuestionScreen>,
}

impl<W: Write> JsonView<W> {
    pub fn new(out: W, thread: &Thread, color: Color) -> Self {
        Self { out, questions: QuestionScreen::open(thread, color) }
    }
}

impl<W: Write> View for JsonView<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let mut line = match &event.kind {
            EventKind::Notification(notification) => notification.encode()?,
            EventKind::Other { method, params } => encode_notification(method, Some(params), None)?,
            _ => return Ok(()),
        };
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.questions.iter_mut().for_each(|questions| questions.follow(event));
        self.out.flush()
    }

    fn warn(&mut self, word: &str, text: &str) -> io::Result<()> {
        writeln!(io::stderr(), "{word}: {text}")
    }

    fn show_question(&mut self, question: &Question) -> io::Result<()> {
        self.questions.as_mut().map_or(Ok(()), |questions| questions.show(question))
    }

    fn show_hint(&mut self, question: &Question) -> io::Result<()> {
        self.questions.as_mut().map_or(Ok(()), |questions| questions.show_hint(question))
    }

    fn is_interactive(&self) -> bool {
        self.questions.is_some()
    }
}

/// Prints text. At a terminal all of it goes to stdout. If stdout is a pipe or a file, it gets only the agent's last
/// message, and the rest goes to stderr.
pub struct TextView {
    thread_id: String,
    screen: Screen,
    renderer: Renderer,
    /// Where the last message goes, unless to the screen.
    answer: Option<Box<dyn Write>>,
    /// A message that may be the last one.
    held: Option<Event>,
    /// Where questions are shown if the screen is a pipe or a file.
    questions: Option<QuestionScreen>,
}

impl TextView {
    pub fn new(thread: &Thread, color: Color) -> Self {
        let stdout = Screen::stdout(color);
        let (screen, answer): (_, Option<Box<dyn Write>>) = match stdout.is_terminal() {
            true => (stdout, None),
            false => (Screen::stderr(color), Some(Box::new(io::stdout()))),
        };
        let renderer = Renderer::new(screen.style()).in_folder(&thread.settings().cwd);
        let questions = if screen.is_terminal() { None } else { QuestionScreen::open(thread, color) };
        Self { thread_id: thread.id().to_owned(), screen, renderer, answer, held: None, questions }
    }

    /// Follows the size of the window.
    fn fit(&mut self) {
        self.renderer.restyle(self.screen.measure());
    }

    /// Prints a closing line, such as how to resume.
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

    /// Prints the held message, which was not the last one.
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
        // Events of child agents are not shown.
        if event.thread_id.as_ref().is_some_and(|thread| *thread != self.thread_id) {
            return Ok(());
        }
        self.questions.iter_mut().for_each(|questions| questions.follow(event));
        let (Some(notification), Some(answer)) = (event.notification(), &mut self.answer) else {
            return self.show(event);
        };
        match notification {
            ServerNotification::AgentMessageDelta(_) => return Ok(()),
            // The review's text is repeated as a message.
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
        if let Some(questions) = &mut self.questions {
            return questions.show(question);
        }
        let text = question.show(|asked| self.renderer.question(asked));
        self.screen.print(&text)
    }

    fn show_hint(&mut self, question: &Question) -> io::Result<()> {
        if let Some(questions) = &mut self.questions {
            return questions.show_hint(question);
        }
        self.screen.print(&format!("  {}\n> ", question.hint()))
    }

    fn is_interactive(&self) -> bool {
        self.screen.is_terminal() || self.questions.is_some()
    }

    fn line_entered(&mut self) {
        self.screen.line_entered();
    }

    fn tick(&mut self) -> io::Result<()> {
        self.fit();
        self.screen.spin(&self.renderer.status())
    }
}

/// Ends an incomplete line.
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
