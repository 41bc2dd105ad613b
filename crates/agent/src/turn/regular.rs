//! A turn that answers input of the user, and what it adds to the conversation.

use std::sync::Arc;
use std::time::Duration;

use loomd_protocol::{
    RawResponseItemCompletedNotification, ResponseItem, ServerNotification, ThreadItem, TurnToolOutput,
};
use loomd_store::rollout::{CompletedItem, Record, UserMessage};
use uuid::Uuid;

use super::recovered::RecoveredTurn;
use super::task::{Failure, TurnTask};
use super::work::TurnInput;
use crate::context::{self, PromptContext};
use crate::goals::TurnNote;
use crate::inbox::{Input, UserMessageInput};
use crate::input;
use crate::message::message;
use crate::replay::CallPurpose;

/// How long a turn waits for MCP servers that the thread can do without.
const STARTUP_GRACE: Duration = Duration::from_secs(1);

impl TurnTask {
    /// Calls the model until it makes no more tool calls and no input is left.
    pub(super) async fn answer(&mut self, input: TurnInput, recovered: Option<RecoveredTurn>) -> Result<(), Failure> {
        // Calls without an output would be lost in a summary.
        let is_new = recovered.is_none();
        if is_new && let Err(failure) = self.compact_if_full().await {
            // The input is recorded although the turn fails.
            self.begin_with(input).await?;
            return Err(failure);
        }
        self.record_context().await;
        if !self.begin_session().await? {
            return Ok(());
        }
        // Whether the model has to be called. Not when hooks refused the input.
        let mut open = self.begin_with(input).await?;
        if let Some(recovered) = recovered {
            open = self.take_up(recovered).await?;
        }
        self.replay_gap().await?;
        loop {
            for inputs in self.inbox.take() {
                open |= self.take_queued(inputs).await?;
            }
            if !open {
                self.settled().await?;
                if self.inbox.close_if_empty() {
                    return Ok(());
                }
                continue;
            }
            // Without a rollout nothing more is done.
            if let Some(error) = self.cx.broken() {
                return Err(Failure::Other(error));
            }
            if !self.cx.until_watched().await || !self.cx.may_step().await {
                return Err(Failure::Interrupted);
            }
            self.within_budgets().await?;
            self.update_tools().await?;
            if self.scope.records
                && let Some(TurnNote(note)) = self.goals.take_note()
            {
                self.append(&message("user", note)).await;
            }
            self.replay_model_call(CallPurpose::Answer);
            open = self.step().await?;
            if open && self.scope.records {
                self.goals.tools_called(&self.cx.turn_id).await;
            }
            self.replay_gap().await?;
            if !open {
                self.settled().await?;
                open = self.inbox.is_empty() && self.continued_by_hooks().await?;
                if !open && self.inbox.close_if_empty() {
                    return Ok(());
                }
            }
            if self.is_full() {
                self.compact_midway().await?;
            }
        }
    }

    /// Adds what the turn begins with to the conversation. False when hooks refused it.
    async fn begin_with(&mut self, input: TurnInput) -> Result<bool, Failure> {
        for item in std::mem::take(&mut self.progress.given_context) {
            self.append(&item).await;
        }
        match input {
            // Without input the model goes on from the conversation as it is.
            TurnInput::User(input) if input.content.is_empty() => Ok(true),
            TurnInput::User(input) => self.submit(input).await,
            TurnInput::Goal(prompt) => {
                self.append(&message("user", prompt)).await;
                Ok(true)
            }
            TurnInput::Message(item) => {
                self.append(&item).await;
                Ok(true)
            }
            TurnInput::ToolOutput(output) => {
                self.take_tool_output(output).await;
                Ok(true)
            }
        }
    }

    /// Waits for the MCP servers, as long as the thread does, and takes the tools that there are now.
    pub(super) async fn update_tools(&mut self) -> Result<(), Failure> {
        let servers = Arc::clone(&self.toolbox.cx().thread.mcp);
        // Older clients' threads wait for all servers, newer ones for those that they cannot do without.
        let grace = match self.cx.profile.newer_tools {
            true => STARTUP_GRACE.saturating_sub(servers.age()),
            false => Duration::MAX,
        };
        tokio::select! {
            () = servers.started() => {}
            () = tokio::time::sleep(grace) => {}
            () = self.cx.cancel.cancelled() => return Err(Failure::Interrupted),
        }
        if let Some(toolbox) = self.toolbox.refreshed() {
            self.toolbox = Arc::new(toolbox);
        }
        Ok(())
    }

    /// Waits until all holds of the inbox are released.
    async fn settled(&self) -> Result<(), Failure> {
        tokio::select! {
            () = self.inbox.settled() => Ok(()),
            () = self.cx.cancel.cancelled() => Err(Failure::Interrupted),
        }
    }

    /// Adds queued input to the conversation; false when hooks refused it.
    pub(super) async fn take_queued(&mut self, inputs: Input) -> Result<bool, Failure> {
        match inputs {
            Input::User(input) => self.submit(input).await,
            Input::Injected(item) => {
                self.append(&item).await;
                Ok(true)
            }
            Input::Agent { item, activity } => {
                self.append(&item).await;
                self.cx.complete_at_once(*activity).await;
                Ok(true)
            }
        }
    }

    /// Records user input and publishes it as an item.
    pub(super) async fn take_input(&mut self, input: UserMessageInput) {
        let UserMessageInput { id, content: input, client_id } = input;
        self.toolbox.cx().thread.mcp.note_mentions(&input);
        self.cx.trace.user_prompt(&input);
        let id = id.unwrap_or_else(|| Uuid::new_v4().to_string());
        let item = input::user_message(&input, &self.cx.settings.cwd, &self.services.images, &self.cx.cancel).await;
        let stored = UserMessage { client_id: client_id.clone(), ..input::stored(&input, id.clone()) };
        self.conversation.push(&item);
        if self.scope.records {
            self.show_raw(&item).await;
            self.cx.record(&[Record::ResponseItem(item), Record::EventMsg(stored.into())]).await;
        } else {
            // The prompt of a review is an item of the thread and no part of its conversation.
            self.cx.record(&[Record::EventMsg(stored.into())]).await;
        }
        if !self.cx.is_broken() {
            self.view.mark_stored();
        }
        let item = ThreadItem::UserMessage { id, content: input, client_id };
        self.cx.started(item.clone()).await;
        self.cx.show_completed(item).await;
    }

    /// Records the output of a tool that the client ran by itself, and publishes it as an item.
    async fn take_tool_output(&mut self, output: TurnToolOutput) {
        let TurnToolOutput { name, namespace, output, .. } = output;
        let id = Uuid::now_v7().to_string();
        let item = ResponseItem::FunctionCallOutput {
            call_id: String::new(),
            name: Some(name.clone()),
            namespace: namespace.clone(),
            output: output.clone(),
        };
        self.append(&item).await;
        let stored = CompletedItem::FunctionCallOutput { id, name, namespace, output };
        self.cx.complete_at_once(stored).await;
        if !self.cx.is_broken() {
            self.view.mark_stored();
        }
    }

    /// Adds the context to the conversation: all of it, or what changed since the baseline.
    pub(super) async fn record_context(&mut self) {
        let (items, context) = {
            let cx = self.prompt_context();
            let items = match &self.conversation.baseline {
                Some(before) => context::changes(&cx, before),
                None => context::initial(&cx).await,
            };
            (items, cx.record())
        };
        for item in &items {
            self.append(item).await;
        }
        if self.scope.records {
            self.cx.note(&[Record::TurnContext(Box::new(context.clone()))]).await;
        }
        self.conversation.baseline = Some(context);
    }

    pub(super) fn prompt_context(&self) -> PromptContext<'_> {
        PromptContext {
            settings: &self.cx.settings,
            profile: &self.cx.profile,
            model: &self.cx.model,
            turn_id: &self.cx.turn_id,
            shell: self.services.shell_name(),
            home: &self.services.home,
            subagents: &self.subagents,
            has_apps: self.toolbox.cx().thread.mcp.has_apps(),
            realtime_active: match &self.services.replayed {
                Some(replayed) => replayed.realtime_active(),
                None => self.cx.realtime.is_active(),
            },
            now: self.services.now(),
        }
    }

    /// Adds an item to the conversation.
    pub(super) async fn append(&mut self, item: &ResponseItem) {
        self.conversation.push(item);
        if self.scope.records {
            self.cx.note(&[Record::ResponseItem(item.clone())]).await;
            self.show_raw(item).await;
        }
    }

    /// Publishes an item of the conversation to clients that opted in to raw events.
    pub(super) async fn show_raw(&self, item: &ResponseItem) {
        if self.cx.profile.raw_events {
            self.cx
                .publish(ServerNotification::RawResponseItemCompleted(RawResponseItemCompletedNotification {
                    thread_id: self.cx.thread_id.clone(),
                    turn_id: self.cx.turn_id.clone(),
                    item: item.clone(),
                }))
                .await;
        }
    }

    /// Waits for the calls of the last answer and adds their outputs to the conversation. False when there were none.
    pub(super) async fn collect_outputs(&mut self) -> bool {
        let mut outputs = self.progress.calls.take();
        let called = !outputs.is_empty();
        while let Some(items) = outputs.next(&self.cx).await {
            for item in &items {
                self.append(item).await;
            }
        }
        called
    }
}
