//! Turns: starts, steers and interrupts them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use loomd_client::protocol::{ReviewStartParams, ReviewTarget, ThreadShellCommandParams};
use loomd_client::{Input, Turn};

use super::{Exit, Session};
use crate::chat::activity::Activity;
use crate::chat::attachments::with_images;
use crate::chat::requests::{Outcome, message};
use crate::show::lines;

/// How many inputs may wait for a turn.
const MAX_QUEUED: usize = 16;

impl Session {
    /// Sends a prompt: as a turn, or as input of the running one.
    pub(super) fn send_prompt(&mut self, text: String) -> Result<()> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let (input, images) = with_images(&text, Path::new(&self.cwd), home.as_deref());
        self.echo(&text)?;
        for image in images {
            let path = lines(&image.to_string_lossy()).join(" ");
            self.remark(&format!("image: {path}"))?;
        }
        match self.activity {
            Activity::Idle => self.start_turn(input, text),
            // It cannot be steered before it has started.
            Activity::Starting { .. } => return self.queue(input, text),
            Activity::Running { .. } => self.steer(input, text),
        }
        Ok(())
    }

    pub(super) fn start_turn(&mut self, input: Input, text: String) {
        let params = self.settings.apply(self.thread.turn_params(input));
        let (client, sender) = (self.client.clone(), self.sender.clone());
        let request = self.expect_turn();
        self.spawn(async move {
            match client.start_turn(params).await {
                Ok(turn) => {
                    _ = sender.send(Outcome::TurnAccepted).await;
                    finish(request, turn).await
                }
                Err(error) => {
                    Outcome::NotStarted { request: Some(request), text: Some(text), message: message(&error) }
                }
            }
        });
    }

    pub(super) fn start_review(&mut self, target: ReviewTarget) {
        let params =
            ReviewStartParams { thread_id: self.thread.id().to_owned(), target, delivery: None, idempotency_key: None };
        let client = self.client.clone();
        let request = self.expect_turn();
        self.spawn(async move {
            match client.start_review(params).await {
                Ok(review) => finish(request, review.turn).await,
                Err(error) => Outcome::NotStarted { request: Some(request), text: None, message: message(&error) },
            }
        });
    }

    pub(super) fn compact(&mut self) {
        let thread = self.thread.clone();
        let request = self.expect_turn();
        self.spawn_quietly(Some(request), async move { thread.compact().await });
    }

    /// Runs a command in the user's shell, without a sandbox. The model sees it with the next turn.
    pub(super) fn run_shell(&mut self, command: String) -> Result<()> {
        self.echo(&format!("!{command}"))?;
        let params =
            ThreadShellCommandParams { thread_id: self.thread.id().to_owned(), command, idempotency_key: None };
        let client = self.client.clone();
        // During a turn it is an item of that turn.
        let request = self.activity.is_idle().then(|| self.expect_turn());
        self.spawn_quietly(request, async move { client.thread_shell_command(params).await.map(drop) });
        Ok(())
    }

    /// Notes that a turn will start, and returns the number of its request.
    fn expect_turn(&mut self) -> u64 {
        self.requests += 1;
        self.activity = Activity::starting(self.requests);
        self.requests
    }

    /// Runs a request that shows itself by events.
    fn spawn_quietly(
        &mut self,
        request: Option<u64>,
        running: impl Future<Output = Result<(), loomd_client::Error>> + Send + 'static,
    ) {
        let sender = self.sender.clone();
        tokio::spawn(async move {
            if let Err(error) = running.await {
                _ = sender.send(Outcome::NotStarted { request, text: None, message: message(&error) }).await;
            }
        });
    }

    fn steer(&mut self, input: Input, text: String) {
        let thread = self.thread.clone();
        self.spawn(async move {
            match thread.steer(input.clone()).await {
                Ok(_) => Outcome::Steered,
                Err(error) => Outcome::NotSteered { input, text, message: message(&error) },
            }
        });
    }

    /// A turn has ended before it got the input, or cannot be steered.
    pub(super) fn not_steered(&mut self, input: Input, text: String, message: &str) -> Result<()> {
        if self.activity.is_idle() {
            self.start_turn(input, text);
            return Ok(());
        }
        self.remark(&format!("{message}; sent when this turn has ended"))?;
        self.queue(input, text)
    }

    fn queue(&mut self, input: Input, text: String) -> Result<()> {
        if self.queued.len() < MAX_QUEUED {
            self.queued.push_back((input, text));
            return Ok(());
        }
        self.give_back(Some(text));
        self.warn("not sent", "too many inputs wait for the turn")
    }

    /// Steers the turn that has started with the inputs that waited for it.
    pub(super) fn steer_queued(&mut self) {
        for (input, text) in std::mem::take(&mut self.queued) {
            self.steer(input, text);
        }
    }

    /// Starts a turn with the first input that waits.
    pub(super) fn start_queued(&mut self) {
        if let Some((input, text)) = self.queued.pop_front() {
            self.start_turn(input, text);
        }
    }

    pub(super) fn not_started(&mut self, request: Option<u64>, text: Option<String>, message: &str) -> Result<()> {
        self.give_back(text);
        self.warn("error", message)?;
        if request.is_some_and(|request| self.activity.request_ended(request)) {
            self.start_queued();
        }
        Ok(())
    }

    /// Returns a text to the input, unless the user has typed something else.
    pub(super) fn give_back(&mut self, text: Option<String>) {
        if let (Some(text), true) = (text, self.editor.text().is_empty()) {
            self.editor.text_mut().paste(&text);
        }
    }

    /// Interrupts the turn; leaves at once if that was requested already.
    pub(super) fn interrupt(&mut self) {
        match &mut self.activity {
            Activity::Idle => {}
            Activity::Starting { stop, .. } if !*stop => *stop = true,
            Activity::Running { stopping, .. } if !*stopping => {
                *stopping = true;
                self.request_interrupt();
            }
            Activity::Starting { .. } | Activity::Running { .. } => self.exit = Some(Exit::AtOnce),
        }
    }

    /// Does not wait for the response: the end of the turn shows the result.
    pub(super) fn request_interrupt(&mut self) {
        let thread = self.thread.clone();
        tokio::spawn(async move { thread.interrupt().await });
    }
}

/// Waits for the end of a turn. Its events show the result.
async fn finish(request: u64, turn: Turn) -> Outcome {
    let turn_id = turn.id().to_owned();
    _ = turn.finish().await;
    Outcome::TurnEnded { request, turn_id }
}
