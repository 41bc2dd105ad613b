//! One answer of the model, event by event: notifications while items stream in, records when they are done.

use loomd_config::Feature;
use loomd_model::ModelEvent;
use loomd_protocol::{
    AgentMessageDeltaNotification, ContentItem, FileChangePatchUpdatedNotification, MessagePhase,
    PlanDeltaNotification, ReasoningItemContent, ReasoningItemReasoningSummary, ReasoningSummaryPartAddedNotification,
    ReasoningSummaryTextDeltaNotification, ReasoningTextDeltaNotification, ResponseItem, ServerNotification,
    ThreadItem,
};
use loomd_store::rollout::{
    AgentMessage, AgentReasoning, AgentReasoningRawContent, CompletedItem, Event, ItemCompleted, Record,
};
use uuid::Uuid;

use super::hosted;
use super::patch_stream::PatchStream;
use super::task::TurnTask;
use crate::message::text_of;
use crate::tool_call::Call;
use crate::visible::{self, MessageSplitter, Piece};

/// The items of an answer that were published as started and not yet as completed.
#[derive(Default)]
pub(super) struct Answer {
    open: Vec<OpenItem>,
}

struct OpenItem {
    id: String,
    kind: ItemKind,
}

enum ItemKind {
    Message(OpenMessage),
    Reasoning {
        summary: Vec<String>,
        content: Vec<String>,
    },
    /// A tool that the provider runs itself.
    Hosted,
    /// A patch that is being written, with the id of its call.
    Patch {
        call_id: String,
        patch: PatchStream,
    },
}

struct OpenMessage {
    visible: MessageSplitter,
    phase: Option<MessagePhase>,
    /// Published as started.
    started: bool,
    text: String,
    plan: Option<String>,
}

impl TurnTask {
    /// Handles an event about an item.
    pub(super) async fn item_event(&mut self, answer: &mut Answer, event: ModelEvent) {
        match event {
            ModelEvent::ItemAdded { item, id, .. } => self.added(answer, item, id).await,
            ModelEvent::ItemDone { item, id, .. } => self.done(answer, item, id).await,
            ModelEvent::TextDelta { item_id, delta } => {
                if let Some(OpenItem { id, kind: ItemKind::Message(message) }) =
                    answer.find(item_id.as_deref(), |kind| matches!(kind, ItemKind::Message(_)))
                {
                    let pieces = message.visible.push(&delta);
                    self.show_pieces(id, message, pieces).await;
                }
            }
            ModelEvent::InputDelta { item_id, delta } => {
                if let Some(OpenItem { kind: ItemKind::Patch { call_id, patch }, .. }) =
                    answer.find(item_id.as_deref(), |kind| matches!(kind, ItemKind::Patch { .. }))
                    && let Some(changes) = patch.push(&delta)
                {
                    let updated = FileChangePatchUpdatedNotification {
                        thread_id: self.cx.thread_id.clone(),
                        turn_id: self.cx.turn_id.clone(),
                        item_id: call_id.clone(),
                        changes,
                    };
                    self.cx.publish(ServerNotification::FileChangePatchUpdated(updated)).await;
                }
            }
            ModelEvent::SummaryPartAdded { item_id, index } => {
                if let Some(OpenItem { id, kind: ItemKind::Reasoning { summary, .. } }) =
                    answer.reasoning(item_id.as_deref())
                {
                    slot(summary, index);
                    self.cx
                        .publish(ServerNotification::ReasoningSummaryPartAdded(ReasoningSummaryPartAddedNotification {
                            thread_id: self.cx.thread_id.clone(),
                            turn_id: self.cx.turn_id.clone(),
                            item_id: id.clone(),
                            summary_index: index,
                        }))
                        .await;
                }
            }
            ModelEvent::SummaryDelta { item_id, index, delta } => {
                if let Some(OpenItem { id, kind: ItemKind::Reasoning { summary, .. } }) =
                    answer.reasoning(item_id.as_deref())
                {
                    if let Some(text) = slot(summary, index) {
                        text.push_str(&delta);
                    }
                    self.cx
                        .publish(ServerNotification::ReasoningSummaryTextDelta(ReasoningSummaryTextDeltaNotification {
                            thread_id: self.cx.thread_id.clone(),
                            turn_id: self.cx.turn_id.clone(),
                            item_id: id.clone(),
                            delta,
                            summary_index: index,
                        }))
                        .await;
                }
            }
            ModelEvent::ReasoningDelta { item_id, index, delta } => {
                if let Some(OpenItem { id, kind: ItemKind::Reasoning { content, .. } }) =
                    answer.reasoning(item_id.as_deref())
                {
                    if let Some(text) = slot(content, index) {
                        text.push_str(&delta);
                    }
                    self.cx
                        .publish(ServerNotification::ReasoningTextDelta(ReasoningTextDeltaNotification {
                            thread_id: self.cx.thread_id.clone(),
                            turn_id: self.cx.turn_id.clone(),
                            item_id: id.clone(),
                            delta,
                            content_index: index,
                        }))
                        .await;
                }
            }
            _ => {}
        }
    }

    async fn added(&mut self, answer: &mut Answer, item: ResponseItem, id: Option<String>) {
        let id = id.unwrap_or_else(|| Uuid::new_v4().to_string());
        let kind = match item {
            ResponseItem::Message { role, phase, .. } if role == "assistant" => {
                let mut message = OpenMessage::new(self.plans(), phase);
                // In plan mode a message may consist of a plan only, which is an item of its own.
                if !self.plans() {
                    self.start_message(&id, &mut message).await;
                }
                ItemKind::Message(message)
            }
            ResponseItem::Reasoning { .. } => {
                let (summary, content) = (Vec::new(), Vec::new());
                self.cx.started(ThreadItem::Reasoning { id: id.clone(), summary, content }).await;
                ItemKind::Reasoning { summary: Vec::new(), content: Vec::new() }
            }
            item @ (ResponseItem::WebSearchCall { .. } | ResponseItem::ImageGenerationCall { .. }) => {
                if let Some(started) = hosted::started(&item, &id) {
                    self.cx.started(started).await;
                }
                ItemKind::Hosted
            }
            ResponseItem::CustomToolCall { name, call_id, .. } if name == "apply_patch" && self.streams_patches() => {
                ItemKind::Patch { call_id, patch: PatchStream::default() }
            }
            _ => return,
        };
        answer.open.push(OpenItem { id, kind });
    }

    async fn done(&mut self, answer: &mut Answer, item: ResponseItem, id: Option<String>) {
        match &item {
            ResponseItem::Message { role, .. } if role == "assistant" => {
                let open = answer.take(id.as_deref(), |kind| matches!(kind, ItemKind::Message(_)));
                self.message_done(open, &item, id).await;
            }
            ResponseItem::Reasoning { .. } => {
                let open = answer.take(id.as_deref(), |kind| matches!(kind, ItemKind::Reasoning { .. }));
                self.reasoning_done(open, &item, id).await;
            }
            ResponseItem::WebSearchCall { .. } | ResponseItem::ImageGenerationCall { .. } => {
                let open = answer.take(id.as_deref(), |kind| matches!(kind, ItemKind::Hosted));
                self.hosted_done(open.map(|open| open.id), &item, id).await;
            }
            ResponseItem::FunctionCall { .. }
            | ResponseItem::CustomToolCall { .. }
            | ResponseItem::LocalShellCall { .. }
            | ResponseItem::ToolSearchCall { .. } => {
                answer.take(id.as_deref(), |kind| matches!(kind, ItemKind::Patch { .. }));
                self.append(&item).await;
                if let Some(call) = Call::of(&item) {
                    self.progress.calls.launch(&self.toolbox, call);
                }
            }
            ResponseItem::Compaction { .. } => self.append(&item).await,
            _ => {}
        }
    }

    /// Whether clients are shown patches while the model writes them.
    fn streams_patches(&self) -> bool {
        self.scope.shows_messages && self.cx.profile.config.features.enabled(Feature::ApplyPatchStreamingEvents)
    }

    /// Whether proposed plans become items of their own.
    fn plans(&self) -> bool {
        self.cx.settings.mode == loomd_protocol::ModeKind::Plan && self.scope.shows_messages
    }

    async fn start_message(&self, id: &str, message: &mut OpenMessage) {
        if !message.started && self.scope.shows_messages {
            message.started = true;
            self.cx.started(message.item(id)).await;
        }
    }

    async fn show_pieces(&self, id: &str, message: &mut OpenMessage, pieces: Vec<Piece>) {
        for piece in pieces {
            match piece {
                Piece::Text(delta) => {
                    self.start_message(id, message).await;
                    message.text.push_str(&delta);
                    if message.started {
                        self.cx
                            .publish(ServerNotification::AgentMessageDelta(AgentMessageDeltaNotification {
                                thread_id: self.cx.thread_id.clone(),
                                turn_id: self.cx.turn_id.clone(),
                                item_id: id.into(),
                                delta,
                            }))
                            .await;
                    }
                }
                Piece::PlanBegins if message.plan.is_none() => {
                    message.plan = Some(String::new());
                    self.cx.started(ThreadItem::Plan { id: self.plan_id(), text: String::new() }).await;
                }
                Piece::Plan(delta) => {
                    message.plan.get_or_insert_default().push_str(&delta);
                    self.cx
                        .publish(ServerNotification::PlanDelta(PlanDeltaNotification {
                            thread_id: self.cx.thread_id.clone(),
                            turn_id: self.cx.turn_id.clone(),
                            item_id: self.plan_id(),
                            delta,
                        }))
                        .await;
                }
                Piece::PlanBegins | Piece::PlanEnds => {}
            }
        }
    }

    async fn message_done(&mut self, open: Option<OpenItem>, item: &ResponseItem, id: Option<String>) {
        let streamed = open.is_some();
        let (id, mut message) = match open {
            Some(OpenItem { id, kind: ItemKind::Message(message) }) => (id, message),
            _ => (id.unwrap_or_else(|| Uuid::new_v4().to_string()), OpenMessage::new(self.plans(), None)),
        };
        let whole = text_of_answer(item);
        if streamed {
            let rest = message.visible.finish();
            self.show_pieces(&id, &mut message, rest).await;
        }
        let (text, plan) = visible::whole(&whole, self.plans());
        if let ResponseItem::Message { phase, .. } = item {
            message.phase = phase.or(message.phase);
        }
        let shows_text = message.started || !text.is_empty() || plan.is_none();
        if shows_text && self.plans() && !message.started {
            // In plan mode `item/started` has an empty text, also for a message without deltas.
            self.start_message(&id, &mut OpenMessage::new(true, None)).await;
            message.started = self.scope.shows_messages;
        }
        message.text = text;
        if shows_text {
            self.start_message(&id, &mut message).await;
        }
        let mut records = Vec::new();
        if self.scope.records {
            if let Some(plan) = &plan {
                if message.plan.is_none() {
                    self.cx.started(ThreadItem::Plan { id: self.plan_id(), text: String::new() }).await;
                }
                records.push(self.plan_record(plan));
            }
            if shows_text {
                records.push(Record::EventMsg(message.event(&id).into()));
            }
            records.push(Record::ResponseItem(item.clone()));
        }
        self.conversation.push(item);
        self.cx.record(&records).await;
        if self.scope.records {
            self.show_raw(item).await;
        }
        if let Some(plan) = plan.filter(|_| self.scope.shows_messages) {
            self.cx.show_completed(ThreadItem::Plan { id: self.plan_id(), text: plan }).await;
        }
        if message.started {
            self.cx.show_completed(message.item(&id)).await;
        }
        self.progress.last_message = Some(message.text);
    }

    async fn reasoning_done(&mut self, open: Option<OpenItem>, item: &ResponseItem, id: Option<String>) {
        let ResponseItem::Reasoning { summary, content, .. } = item else { return };
        let id = match open {
            Some(open) => open.id,
            None => {
                let id = id.unwrap_or_else(|| Uuid::new_v4().to_string());
                let empty = ThreadItem::Reasoning { id: id.clone(), summary: Vec::new(), content: Vec::new() };
                self.cx.started(empty).await;
                id
            }
        };
        let summary: Vec<String> =
            summary.iter().map(|ReasoningItemReasoningSummary::SummaryText { text }| text.clone()).collect();
        let content: Vec<String> = content
            .iter()
            .flatten()
            .map(|part| match part {
                ReasoningItemContent::ReasoningText { text } | ReasoningItemContent::Text { text } => text.clone(),
            })
            .collect();
        if self.scope.records {
            let mut records = reasoning_events(&id, &summary, &content);
            records.push(Record::ResponseItem(item.clone()));
            self.cx.record(&records).await;
            self.show_raw(item).await;
        }
        self.conversation.push(item);
        self.cx.show_completed(ThreadItem::Reasoning { id, summary, content }).await;
    }

    /// Completes the open items at the end of a stream. `keep`: what has arrived of them is recorded.
    pub(super) async fn end_open_items(&mut self, answer: &mut Answer, keep: bool) {
        for OpenItem { id, kind } in std::mem::take(&mut answer.open) {
            match kind {
                ItemKind::Message(mut message) => {
                    let rest = message.visible.finish();
                    self.show_pieces(&id, &mut message, rest).await;
                    let mut records = Vec::new();
                    if let Some(plan) = &message.plan {
                        records.push(self.plan_record(plan));
                    }
                    if !message.text.is_empty() {
                        records.push(Record::EventMsg(message.event(&id).into()));
                        if keep {
                            let said = ResponseItem::Message {
                                role: "assistant".into(),
                                content: vec![ContentItem::OutputText { text: message.text.clone() }],
                                end_turn: None,
                                phase: message.phase,
                                id: None,
                            };
                            self.conversation.push(&said);
                            records.push(Record::ResponseItem(said));
                        }
                    }
                    if self.scope.records {
                        self.cx.record(&records).await;
                    }
                    if let Some(plan) = message.plan.take() {
                        self.cx.show_completed(ThreadItem::Plan { id: self.plan_id(), text: plan }).await;
                    }
                    if message.started {
                        self.cx.show_completed(message.item(&id)).await;
                    }
                }
                ItemKind::Reasoning { summary, content } => {
                    if self.scope.records {
                        self.cx.record(&reasoning_events(&id, &summary, &content)).await;
                    }
                    self.cx.show_completed(ThreadItem::Reasoning { id, summary, content }).await;
                }
                // The call itself becomes an item when it is complete.
                ItemKind::Patch { .. } => {}
                ItemKind::Hosted => {
                    let open = self.cx.events.open_items(&self.cx.turn_id);
                    if let Some(item) = open.into_iter().find(|item| item.id() == id) {
                        self.cx.show_completed(hosted::given_up(item)).await;
                    }
                }
            }
        }
    }

    fn plan_record(&self, plan: &str) -> Record {
        Record::EventMsg(Event::ItemCompleted(ItemCompleted {
            thread_id: self.cx.thread_id.clone(),
            turn_id: self.cx.turn_id.clone(),
            item: CompletedItem::Plan { id: self.plan_id(), text: plan.into() },
        }))
    }

    fn plan_id(&self) -> String {
        format!("{}-plan", self.cx.turn_id)
    }
}

impl Answer {
    /// The open item that an event is about: the one with its id, else the last one of the kind.
    fn find(&mut self, id: Option<&str>, is: impl Fn(&ItemKind) -> bool) -> Option<&mut OpenItem> {
        let at = self.position(id, is)?;
        self.open.get_mut(at)
    }

    fn reasoning(&mut self, id: Option<&str>) -> Option<&mut OpenItem> {
        self.find(id, |kind| matches!(kind, ItemKind::Reasoning { .. }))
    }

    fn take(&mut self, id: Option<&str>, is: impl Fn(&ItemKind) -> bool) -> Option<OpenItem> {
        let at = self.position(id, is)?;
        Some(self.open.remove(at))
    }

    fn position(&self, id: Option<&str>, is: impl Fn(&ItemKind) -> bool) -> Option<usize> {
        let named = id.and_then(|id| self.open.iter().position(|open| open.id == id && is(&open.kind)));
        named.or_else(|| self.open.iter().rposition(|open| is(&open.kind)))
    }
}

impl OpenMessage {
    fn new(plans: bool, phase: Option<MessagePhase>) -> Self {
        Self { visible: MessageSplitter::new(plans), phase, started: false, text: String::new(), plan: None }
    }

    fn item(&self, id: &str) -> ThreadItem {
        ThreadItem::AgentMessage { id: id.into(), text: self.text.clone(), phase: self.phase, memory_citation: None }
    }

    fn event(&self, id: &str) -> AgentMessage {
        AgentMessage { message: self.text.clone(), phase: self.phase, memory_citation: None, item_id: Some(id.into()) }
    }
}

fn reasoning_events(id: &str, summary: &[String], content: &[String]) -> Vec<Record> {
    let item_id = || Some(id.to_owned());
    let summary = summary.iter().map(|text| AgentReasoning { text: text.clone(), item_id: item_id() }.into());
    let content = content.iter().map(|text| AgentReasoningRawContent { text: text.clone(), item_id: item_id() }.into());
    summary.chain(content).map(Record::EventMsg).collect()
}

/// The texts of an assistant message, concatenated.
fn text_of_answer(item: &ResponseItem) -> String {
    let ResponseItem::Message { content, .. } = item else { return text_of(item) };
    let parts = content.iter().filter_map(|part| match part {
        ContentItem::OutputText { text } | ContentItem::InputText { text } => Some(text.as_str()),
        ContentItem::InputImage { .. } => None,
    });
    parts.collect()
}

/// The most parts of one reasoning item; deltas of later ones are ignored.
const MAX_PARTS: usize = 1024;

fn slot(parts: &mut Vec<String>, index: i64) -> Option<&mut String> {
    let index = usize::try_from(index).ok().filter(|index| *index < MAX_PARTS)?;
    if parts.len() <= index {
        parts.resize(index + 1, String::new());
    }
    parts.get_mut(index)
}
