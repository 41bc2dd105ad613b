//! A turn that answers input of the user, and what it adds to the conversation.

use loomd_protocol::{RawResponseItemCompletedNotification, ResponseItem, ServerNotification, ThreadItem, UserInput};
use loomd_store::rollout::Record;
use uuid::Uuid;

use super::task::{Failure, TurnTask};
use crate::context::{self, PromptContext};
use crate::inbox::Input;
use crate::input;
use crate::replay::Asked;

impl TurnTask {
    /// Answers the user.
    pub(super) async fn answer(&mut self, input: Vec<UserInput>) -> Result<(), Failure> {
        if let Err(failure) = self.compact_if_full().await {
            // It cannot be answered, but it was said.
            self.submit(input).await?;
            return Err(failure);
        }
        self.record_context().await;
        if !self.begin_session().await? {
            return Ok(());
        }
        // Whether there is anything to answer. When hooks refuse what was said, there is not.
        let mut open = self.submit(input).await?;
        self.replay_gap().await?;
        loop {
            for inputs in self.inbox.take() {
                open |= self.take_mail(inputs).await?;
            }
            if !open {
                self.settled().await?;
                if self.inbox.close_if_empty() {
                    return Ok(());
                }
                continue;
            }
            // Nothing is done that could not be written down.
            if let Some(error) = self.cx.broken() {
                return Err(Failure::Other(error));
            }
            self.replay_told(Asked::Answer);
            open = self.step().await?;
            self.replay_gap().await?;
            if !open {
                self.settled().await?;
                open = self.inbox.is_empty() && self.must_go_on().await?;
                if !open && self.inbox.close_if_empty() {
                    return Ok(());
                }
            }
            if self.is_full() {
                self.compact_midway().await?;
            }
        }
    }

    /// Waits until nothing is to come that somebody promised.
    async fn settled(&self) -> Result<(), Failure> {
        tokio::select! {
            () = self.inbox.settled() => Ok(()),
            () = self.cx.cancel.cancelled() => Err(Failure::Interrupted),
        }
    }

    /// False when there is nothing in it to answer.
    pub(super) async fn take_mail(&mut self, inputs: Input) -> Result<bool, Failure> {
        match inputs {
            Input::User(input) => self.submit(input).await,
            Input::Injected(item) => {
                self.remember(&item).await;
                Ok(true)
            }
        }
    }

    /// Writes down what the user said and shows it.
    pub(super) async fn take_input(&mut self, input: Vec<UserInput>) {
        let id = Uuid::new_v4().to_string();
        let item = input::user_message(&input, &self.cx.settings.cwd, &self.services.images, &self.cx.cancel).await;
        let stored = input::stored(&input, id.clone());
        self.conversation.push(&item);
        if self.scope.records {
            self.show_raw(&item).await;
            self.cx.record(&[Record::ResponseItem(item), Record::EventMsg(stored.into())]).await;
        } else {
            // A review's prompt is shown in the thread and is no part of its conversation.
            self.cx.record(&[Record::EventMsg(stored.into())]).await;
        }
        if !self.cx.is_broken() {
            self.view.mark_stored();
        }
        let item = ThreadItem::UserMessage { id, content: input };
        self.cx.started(item.clone()).await;
        self.cx.show_completed(item).await;
    }

    /// Tells the model where it is and what it may do: all of it, or what changed.
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
            self.remember(item).await;
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
            now: self.services.now(),
        }
    }

    /// Adds an item to the conversation.
    pub(super) async fn remember(&mut self, item: &ResponseItem) {
        self.conversation.push(item);
        if self.scope.records {
            self.cx.note(&[Record::ResponseItem(item.clone())]).await;
            self.show_raw(item).await;
        }
    }

    /// Shows an item of the conversation to clients that asked for it.
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
                self.remember(item).await;
            }
        }
        called
    }
}
