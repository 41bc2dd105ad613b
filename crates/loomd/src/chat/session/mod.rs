//! [`Session`]: the loop of a chat. It owns all state; requests run in tasks and send their [`Outcome`]s back.

mod draw;
mod events;
mod execute;
mod signals;
mod turns;
mod typed;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::FutureExt;
use loomd_client::protocol::ThreadTokenUsage;
use loomd_client::{Client, Events, Input, Thread};
use loomd_editor::{Editor, History, Text};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::activity::Activity;
use super::completion::Completion;
use super::history_file::HistoryFile;
use super::picker::Picker;
use super::requests::Outcome;
use super::settings::Settings;
use super::surface::Surface;
use crate::run::{Question, Questions};
use crate::show::Renderer;
use signals::Signals;

/// How often the status line is drawn.
const TICK: Duration = Duration::from_millis(100);

/// How many events are shown between two frames.
const BATCH: usize = 256;

/// Capacity of the queue of outcomes.
const OUTCOMES: usize = 64;

pub struct Session {
    client: Client,
    thread: Thread,
    cwd: String,
    settings: Settings,
    surface: Surface,
    renderer: Renderer,
    editor: Editor,
    history: Arc<HistoryFile>,
    completion: Completion,
    picker: Option<Box<Picker>>,
    question: Option<OpenQuestion>,
    activity: Activity,
    /// The number of turns that were requested.
    requests: u64,
    /// Inputs that wait for a turn that can take them.
    queued: VecDeque<(Input, String)>,
    /// The last command that has ended, and its output.
    output: Option<(String, String)>,
    usage: Option<ThreadTokenUsage>,
    sender: mpsc::Sender<Outcome>,
    outcomes: mpsc::Receiver<Outcome>,
    /// The command that waits for the server.
    request: Option<(&'static str, AbortHandle)>,
    search: Option<AbortHandle>,
    /// A message at the end of the frame until the next key.
    hint: Option<String>,
    /// Ctrl-C was pressed at an empty prompt.
    leaving: bool,
    /// Whether a plain terminal shows the prompt.
    prompted: bool,
    exit: Option<Exit>,
}

/// How the chat ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exit {
    Normal,
    /// Without waiting for the server.
    AtOnce,
}

/// A question on the screen, and the input that it has interrupted.
struct OpenQuestion {
    question: Question,
    draft: Text,
}

impl Session {
    pub fn new(thread: Thread, surface: Surface, history: HistoryFile) -> Self {
        let (sender, outcomes) = mpsc::channel(OUTCOMES);
        let settings = Settings::of(&thread);
        let cwd = thread.settings().cwd.clone();
        Self {
            client: thread.client().clone(),
            renderer: Renderer::new(surface.style()).in_folder(&cwd).with_markdown(),
            cwd,
            settings,
            surface,
            editor: Editor::new(History::new(history.read())),
            history: Arc::new(history),
            completion: Completion::default(),
            picker: None,
            question: None,
            activity: Activity::Idle,
            requests: 0,
            queued: VecDeque::new(),
            output: None,
            usage: None,
            sender,
            outcomes,
            request: None,
            search: None,
            hint: None,
            leaving: false,
            prompted: false,
            exit: None,
            thread,
        }
    }

    /// Runs the chat to its end. Returns whether it ends at once, without closing the connection.
    pub async fn run(mut self, mut events: Events, mut questions: Questions) -> Result<bool> {
        let mut keyboard = self.surface.keyboard()?;
        let mut signals = Signals::new()?;
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.welcome()?;
        while self.exit.is_none() {
            self.draw()?;
            tokio::select! {
                biased;
                signal = signals.next() => self.signal(signal)?,
                typed = keyboard.next() => self.typed(typed)?,
                Some(event) = events.next() => {
                    self.event(&event?)?;
                    for _ in 0..BATCH {
                        let Some(Some(event)) = events.next().now_or_never() else { break };
                        self.event(&event?)?;
                    }
                }
                Some(outcome) = self.outcomes.recv() => self.outcome(outcome)?,
                () = resolved(&mut self.question) => self.question_resolved()?,
                Some(question) = questions.recv(), if self.question.is_none() => self.ask(question)?,
                _ = ticks.tick(), if self.surface.is_live() && self.is_busy() => {}
            }
        }
        if self.requests > 0 {
            self.remark(&format!("thread {}\ngo on with `/resume last` in the next chat", self.thread.id()))?;
        }
        self.surface.suspend()?;
        Ok(self.exit == Some(Exit::AtOnce))
    }

    /// Whether there is a status line.
    fn is_busy(&self) -> bool {
        !self.activity.is_idle() || self.request.is_some()
    }

    /// Prints text that the renderer has made.
    fn print(&mut self, text: &str) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if std::mem::take(&mut self.prompted) {
            // The prompt of a plain terminal is still open.
            self.surface.print("\n")?;
        }
        Ok(self.surface.print(text)?)
    }

    /// Prints what the user has entered. A plain terminal has echoed it.
    fn echo(&mut self, text: &str) -> Result<()> {
        if !self.surface.is_live() {
            return Ok(());
        }
        let text = self.renderer.input(text);
        self.print(&text)
    }

    fn remark(&mut self, text: &str) -> Result<()> {
        let text = self.renderer.remark(text);
        self.print(&text)
    }

    fn warn(&mut self, word: &str, text: &str) -> Result<()> {
        let text = self.renderer.warn(word, text);
        self.print(&text)
    }

    /// Runs a request in a task. Its outcome is handled by the loop.
    fn spawn(&mut self, request: impl Future<Output = Outcome> + Send + 'static) -> AbortHandle {
        let sender = self.sender.clone();
        let task = tokio::spawn(async move {
            // The chat may be over.
            _ = sender.send(request.await).await;
        });
        task.abort_handle()
    }
}

async fn resolved(question: &mut Option<OpenQuestion>) {
    match question {
        Some(open) => open.question.resolved().await,
        None => std::future::pending().await,
    }
}
