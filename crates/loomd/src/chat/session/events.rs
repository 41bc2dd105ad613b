//! What the server sends: events of the thread, outcomes of requests, questions.

use anyhow::Result;
use loomd_client::Event;
use loomd_client::protocol::{ServerNotification, ThreadItem};
use loomd_editor::Text;

use super::{OpenQuestion, Session};
use crate::chat::requests::{Outcome, past_turns};
use crate::chat::settings::Settings;
use crate::run::{Answer, Question};
use crate::show::{Renderer, diff_text};

/// How many lines of a diff are shown.
const DIFF_LINES: usize = 400;

impl Session {
    pub(super) fn event(&mut self, event: &Event) -> Result<()> {
        // Events of child agents and of other threads are not shown.
        if event.thread_id.as_deref().is_some_and(|thread| thread != self.thread.id()) {
            return Ok(());
        }
        let Some(notification) = event.notification() else { return Ok(()) };
        let text = self.renderer.show(notification);
        self.print(&text)?;
        match notification {
            ServerNotification::ThreadTokenUsageUpdated(updated) => self.usage = Some(updated.token_usage.clone()),
            ServerNotification::TurnStarted(started) => {
                if self.activity.turn_started(&started.turn.id) {
                    self.request_interrupt();
                } else {
                    self.steer_queued();
                }
            }
            ServerNotification::TurnCompleted(completed) => self.turn_ended(&completed.turn.id),
            ServerNotification::ItemCompleted(completed) => {
                if let ThreadItem::CommandExecution { command, aggregated_output, .. } = &completed.item {
                    self.output = Some((command.clone(), aggregated_output.clone().unwrap_or_default()));
                }
            }
            ServerNotification::McpServerStartupStatusUpdated(updated) => {
                if let Some(error) = &updated.error {
                    let text = format!("{}: {error}", updated.name);
                    self.warn("MCP server", &text)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn turn_ended(&mut self, turn_id: &str) {
        if self.activity.turn_ended(turn_id) {
            self.hint = None;
            self.start_queued();
        }
    }

    pub(super) fn outcome(&mut self, outcome: Outcome) -> Result<()> {
        match outcome {
            Outcome::Text(text) => {
                self.request = None;
                let text = self.renderer.block(&text);
                self.print(&text)
            }
            Outcome::Diff(diff) => {
                self.request = None;
                let text = self.renderer.block(&diff_text(self.surface.style(), &diff, DIFF_LINES));
                self.print(&text)
            }
            Outcome::Pick(picker) => {
                self.request = None;
                if !self.surface.is_live() {
                    let text = self.renderer.block(&picker.lines());
                    self.print(&text)?;
                }
                self.picker = Some(picker);
                Ok(())
            }
            Outcome::Opened { thread, word } => {
                self.request = None;
                let old = std::mem::replace(&mut self.thread, *thread);
                tokio::spawn(async move { old.unsubscribe().await });
                self.open(word)
            }
            Outcome::Failed(message) => {
                self.request = None;
                self.warn("error", &message)
            }
            Outcome::TurnAccepted => {
                self.settings.applied();
                Ok(())
            }
            Outcome::TurnEnded { request, turn_id } => {
                if self.activity.turn_ended(&turn_id) || self.activity.request_ended(request) {
                    self.start_queued();
                }
                Ok(())
            }
            Outcome::NotStarted { request, text, message } => self.not_started(request, text, &message),
            Outcome::Steered => self.tell("added to the running turn"),
            Outcome::NotSteered { input, text, message } => self.not_steered(input, text, &message),
            Outcome::Files { query, files } => {
                self.completion.show_files(&query, files);
                Ok(())
            }
        }
    }

    /// Shows the thread that has become the current one.
    fn open(&mut self, word: &str) -> Result<()> {
        self.settings = Settings::of(&self.thread);
        self.cwd = self.thread.settings().cwd.clone();
        self.usage = None;
        let end = self.renderer.remark(&format!("{word}: {}", self.thread.id()));
        self.print(&end)?;
        self.renderer = Renderer::new(self.surface.style()).in_folder(&self.cwd).with_markdown();
        let turns = self.thread.info().turns.clone();
        let past = past_turns(&mut self.renderer, &turns);
        if !past.is_empty() {
            self.print(&format!("\n{past}"))?;
        }
        Ok(())
    }

    /// Shows a question. The input is set aside until it is answered.
    pub(super) fn ask(&mut self, question: Question) -> Result<()> {
        let text = question.show(|shown| self.renderer.question(shown));
        if self.surface.is_live() {
            self.print(text.trim_end_matches("> "))?;
        } else {
            self.surface.hide_input(question.is_secret())?;
            self.print(&text)?;
        }
        self.picker = None;
        self.question = Some(OpenQuestion { question, draft: self.editor.take() });
        Ok(())
    }

    /// Answers the question with a typed line, or with the end of the input.
    pub(super) fn answer(&mut self, line: Option<&str>) -> Result<()> {
        let Some(OpenQuestion { question, draft }) = self.question.take() else { return Ok(()) };
        match question.parse(line) {
            Some(answer) => {
                let shown = match (line, question.is_secret()) {
                    (None, _) => "no answer".to_owned(),
                    (Some(_), true) => "*".repeat(8),
                    (Some(line), false) => line.trim().to_owned(),
                };
                self.surface.hide_input(false)?;
                if self.surface.is_live() {
                    self.print(&format!("? {}\n", crate::show::lines(&shown).join(" ")))?;
                }
                if matches!(answer, Answer::Refused) {
                    self.hint = Some("declined".to_owned());
                }
                question.answer(answer);
                self.editor.restore(draft);
                Ok(())
            }
            None => {
                let hint = question.hint();
                self.question = Some(OpenQuestion { question, draft });
                if self.surface.is_live() {
                    self.hint = Some(hint);
                    return Ok(());
                }
                self.print(&format!("  {hint}\n> "))
            }
        }
    }

    /// The server has resolved the question otherwise.
    pub(super) fn question_resolved(&mut self) -> Result<()> {
        let draft = self.question.take().map_or(Text::default(), |open| open.draft);
        self.editor.restore(draft);
        self.surface.hide_input(false)?;
        if !self.surface.is_live() {
            self.surface.print("\n")?;
        }
        Ok(())
    }
}
