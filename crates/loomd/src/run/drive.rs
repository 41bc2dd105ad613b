//! Runs one turn to its end: shows events, asks questions, and interrupts the turn at Ctrl-C.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use futures_util::FutureExt;
use loomd_client::protocol::{ServerNotification, ThreadBackgroundTerminalsCleanParams, ThreadItem, TurnStatus};
use loomd_client::{Client, Error, Event, Events, Turn};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::handler::Questions;
use super::keyboard::Keyboard;
use super::question::{Answer, Question};
use super::view::View;

/// How often the status line is drawn.
const TICK: Duration = Duration::from_millis(100);

/// How a turn ended; each value has an exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitReason {
    Done,
    Failed,
    /// Interrupted, or an approval was declined.
    Stopped,
}

/// The outcome of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnOutcome {
    pub exit: ExitReason,
    /// The agent's last message.
    pub message: Option<String>,
    /// Ctrl-C was pressed twice: the program ends without closing the connection.
    pub at_once: bool,
    /// The ids of commands that still ran at the end of the turn.
    pub running: BTreeSet<String>,
}

/// The connection that a turn runs on, and the source of answers.
pub struct TurnContext<'a> {
    pub client: &'a Client,
    pub events: &'a mut Events,
    pub questions: &'a mut Questions,
    /// Reads answers; without one every question is declined.
    pub keyboard: Option<Keyboard>,
}

pub async fn drive(mut turn: Turn, stage: TurnContext<'_>, view: &mut impl View) -> Result<TurnOutcome> {
    let TurnContext { client, events, questions, mut keyboard } = stage;
    let mut signals = Signals::new()?;
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut open, mut refused, mut stopping) = (None::<Question>, false, false);
    let mut running = BTreeSet::new();
    loop {
        tokio::select! {
            biased;
            () = signals.next() => {
                if stopping {
                    return Ok(TurnOutcome { exit: ExitReason::Stopped, message: None, at_once: true, running });
                }
                stopping = true;
                view.warn("interrupting", "press Ctrl-C again to quit at once")?;
                interrupt(client, &turn);
            }
            Some(event) = events.next() => {
                let event = event?;
                note_command(turn.thread_id(), &event, &mut running);
                view.event(&event)?;
            }
            event = turn.next() => match event {
                Some(event) => _ = event?,
                None => break,
            },
            () = resolved(&mut open) => {
                open = None;
                keyboard.iter_mut().for_each(Keyboard::end);
                view.line_entered();
            }
            line = next_line(&mut keyboard), if open.is_some() => {
                view.line_entered();
                let Some(question) = open.take() else { continue };
                match question.parse(line.as_deref()) {
                    Some(answer) => {
                        refused |= answer.is_refusal();
                        question.answer(answer);
                    }
                    None => open = open_question(question, true, &mut keyboard, view)?,
                }
            }
            Some(question) = questions.recv(), if open.is_none() => {
                open = open_question(question, false, &mut keyboard, view)?;
                refused |= open.is_none();
            }
            _ = ticks.tick(), if open.is_none() => view.tick()?,
        }
    }
    // Both streams have the same events; the other one may still have unread ones.
    while let Some(Some(event)) = events.next().now_or_never() {
        let event = event?;
        note_command(turn.thread_id(), &event, &mut running);
        view.event(&event)?;
    }
    outcome(turn, refused, running).await
}

/// How long commands may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Stops the commands that still run after a turn, and shows their ends. They would end with the server in this
/// process, and their ends would not be recorded.
pub async fn stop_commands(
    client: &Client,
    thread_id: &str,
    events: &mut Events,
    mut running: BTreeSet<String>,
    view: &mut impl View,
) -> Result<()> {
    if running.is_empty() {
        return Ok(());
    }
    view.warn("stopping", "commands that still run at the end of the turn")?;
    let params = ThreadBackgroundTerminalsCleanParams { thread_id: thread_id.to_owned() };
    client.thread_background_terminals_clean(params).await?;
    let ends = async {
        while !running.is_empty() {
            let Some(event) = events.next().await else { break };
            let event = event?;
            note_command(thread_id, &event, &mut running);
            view.event(&event)?;
        }
        Ok(())
    };
    timeout(STOP_TIMEOUT, ends).await.unwrap_or(Ok(()))
}

/// Adds a command that has started, and removes one that has ended.
fn note_command(thread_id: &str, event: &Event, running: &mut BTreeSet<String>) {
    if event.thread_id.as_deref() != Some(thread_id) {
        return;
    }
    match event.notification() {
        Some(ServerNotification::ItemStarted(started)) => {
            if let ThreadItem::CommandExecution { id, .. } = &started.item {
                running.insert(id.clone());
            }
        }
        Some(ServerNotification::ItemCompleted(completed)) => {
            if let ThreadItem::CommandExecution { id, .. } = &completed.item {
                running.remove(id);
            }
        }
        _ => {}
    }
}

/// Shows a question, for the first time or again. Without a terminal it is declined, and this returns `None`.
fn open_question(
    question: Question,
    again: bool,
    keyboard: &mut Option<Keyboard>,
    view: &mut impl View,
) -> Result<Option<Question>> {
    let listens = |keyboard: &mut Keyboard| keyboard.begin(question.is_secret()).is_ok();
    if view.is_interactive() && keyboard.as_mut().is_some_and(listens) {
        let shown = if again { view.show_hint(&question) } else { view.show_question(&question) };
        return shown.map(|()| Some(question)).map_err(Into::into);
    }
    view.warn("refused", &question.refusal())?;
    question.answer(Answer::Refused);
    Ok(None)
}

async fn resolved(question: &mut Option<Question>) {
    match question {
        Some(question) => question.resolved().await,
        None => std::future::pending().await,
    }
}

async fn next_line(keyboard: &mut Option<Keyboard>) -> Option<String> {
    keyboard.as_mut()?.line().await
}

/// Does not wait for the response: the end of the turn shows the result.
fn interrupt(client: &Client, turn: &Turn) {
    let (client, thread_id, turn_id) = (client.clone(), turn.thread_id().to_owned(), turn.id().to_owned());
    tokio::spawn(async move { client.interrupt_turn(&thread_id, &turn_id).await });
}

async fn outcome(turn: Turn, refused: bool, running: BTreeSet<String>) -> Result<TurnOutcome> {
    let (exit, message) = match turn.finish().await {
        Ok(done) => {
            let is_done = done.turn.status == TurnStatus::Completed && !refused;
            (if is_done { ExitReason::Done } else { ExitReason::Stopped }, done.agent_message)
        }
        // The error has been shown.
        Err(Error::TurnFailed(done)) => (ExitReason::Failed, done.agent_message),
        Err(error) => return Err(error.into()),
    };
    Ok(TurnOutcome { exit, message, at_once: false, running })
}

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
