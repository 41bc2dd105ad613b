//! Builds the events of one response from steps: items with ids, texts in fragments, and always a last event.

use std::time::Duration;

use loomd_protocol::{ContentItem, MessagePhase, ReasoningItemContent, ReasoningItemReasoningSummary, ResponseItem};

use super::source::TimedEvent;
use super::step::{Step, ToolAction, tokens};
use super::{schema, tools};
use crate::transcript::REHEARSAL_ORIGIN;
use crate::{ModelEvent, Request, ResponseHeaders, TokenUsage};

/// A rough estimate for token counts.
const BYTES_PER_TOKEN: usize = 4;

/// Builds the events of one response.
pub(super) struct ResponseBuilder<'a> {
    request: &'a Request,
    outputs: &'a [String],
    /// How often this conversation has been answered before.
    attempt: u32,
    /// Distinguishes ids of different responses.
    prefix: String,
    items: u64,
    events: Vec<TimedEvent>,
    pace: Duration,
    /// The delay of the next event.
    due: Duration,
    usage: Option<TokenUsage>,
    /// The length of all items in bytes, for the token usage.
    written: usize,
    has_message: bool,
}

impl<'a> ResponseBuilder<'a> {
    pub fn new(request: &'a Request, outputs: &'a [String], attempt: u32, prefix: String) -> Self {
        Self {
            request,
            outputs,
            attempt,
            prefix,
            items: 0,
            events: Vec::new(),
            pace: Duration::ZERO,
            due: Duration::ZERO,
            usage: None,
            written: 0,
            has_message: false,
        }
    }

    /// `last` says that the prompt ends here, so a message is added if there is none.
    pub fn build(mut self, steps: &[Step], last: bool) -> Vec<TimedEvent> {
        let recorded =
            |step: &Step| matches!(step, Step::Event(event) if matches!(**event, Ok(ModelEvent::Headers(_))));
        if !steps.first().is_some_and(recorded) {
            self.emit(ModelEvent::Headers(ResponseHeaders::default()));
        }
        for step in steps {
            self.step(step);
            // A recorded event may be the last one.
            if self.is_over() {
                return self.events;
            }
        }
        if last && (!self.has_message || self.request.output_schema.is_some()) {
            let text = match &self.request.output_schema {
                Some(schema) => schema::instance(schema).to_string(),
                None => "Done.".into(),
            };
            self.say(&text, None);
        }
        self.complete();
        self.events
    }

    fn is_over(&self) -> bool {
        matches!(self.events.last(), Some((_, Err(_) | Ok(ModelEvent::Completed { .. }))))
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Say { text, phase } => self.say(text, *phase),
            Step::Think(text) => self.think(text),
            Step::Reason(text) => self.reason(text),
            Step::Call(action) => self.call(action),
            Step::Item(item) => self.item(item),
            Step::Event(event) => self.push((**event).clone()),
            Step::Fail { times: Some(times), .. } if self.attempt >= *times => {}
            Step::Fail { error, .. } => self.push(Err((**error).clone())),
            Step::Pace(pace) => self.pace = *pace,
            Step::Wait(wait) => self.due += *wait,
            Step::Usage(usage) => self.usage = Some(usage.clone()),
            Step::Also | Step::Break => {}
        }
    }

    fn say(&mut self, text: &str, phase: Option<MessagePhase>) {
        self.has_message = true;
        let id = self.id("msg");
        let message =
            |content| ResponseItem::Message { role: "assistant".into(), content, end_turn: None, phase, id: None };
        self.added(message(Vec::new()), &id);
        for delta in pieces(text) {
            self.due += self.pace;
            self.emit(ModelEvent::TextDelta { item_id: Some(id.clone()), delta });
        }
        self.done(message(vec![ContentItem::OutputText { text: text.into() }]), id);
    }

    fn think(&mut self, text: &str) {
        let id = self.id("rs");
        let item = |summary| ResponseItem::Reasoning { summary, content: None, encrypted_content: rehearsal_origin() };
        self.added(item(Vec::new()), &id);
        self.emit(ModelEvent::SummaryPartAdded { item_id: Some(id.clone()), index: 0 });
        for delta in pieces(text) {
            self.due += self.pace;
            self.emit(ModelEvent::SummaryDelta { item_id: Some(id.clone()), index: 0, delta });
        }
        self.done(item(vec![ReasoningItemReasoningSummary::SummaryText { text: text.into() }]), id);
    }

    fn reason(&mut self, text: &str) {
        let id = self.id("rs");
        let item =
            |content| ResponseItem::Reasoning { summary: Vec::new(), content, encrypted_content: rehearsal_origin() };
        self.added(item(None), &id);
        for delta in pieces(text) {
            self.due += self.pace;
            self.emit(ModelEvent::ReasoningDelta { item_id: Some(id.clone()), index: 0, delta });
        }
        self.done(item(Some(vec![ReasoningItemContent::ReasoningText { text: text.into() }])), id);
    }

    fn call(&mut self, action: &ToolAction) {
        let id = self.id("fc");
        let call_id = format!("call_{}_{}", self.prefix, self.items);
        let item = tools::call(action, &self.request.tools, self.outputs, call_id);
        self.due += self.pace;
        self.done(item, id);
    }

    /// Provider-side tools are shown as started before they are done.
    fn item(&mut self, item: &ResponseItem) {
        let id = self.id("item");
        let mut item = item.clone();
        if let ResponseItem::ImageGenerationCall { id: own, .. } = &mut item
            && own.is_empty()
        {
            *own = id.clone();
        }
        if matches!(item, ResponseItem::WebSearchCall { .. } | ResponseItem::ImageGenerationCall { .. }) {
            self.added(item.clone(), &id);
        }
        self.due += self.pace;
        self.done(item, id);
    }

    fn complete(&mut self) {
        let usage = self.usage.take().unwrap_or_else(|| {
            let input: usize = self.request.input.iter().map(|item| item.len()).sum();
            let count = |bytes: usize| i64::try_from(bytes / BYTES_PER_TOKEN).unwrap_or(i64::MAX);
            tokens(count(input + self.request.instructions.len()), 0, count(self.written).max(1), 0)
        });
        self.emit(ModelEvent::Completed { response_id: format!("resp_{}", self.prefix), usage: Some(usage) });
    }

    fn id(&mut self, kind: &str) -> String {
        self.items += 1;
        format!("{kind}_{}_{}", self.prefix, self.items)
    }

    fn added(&mut self, item: ResponseItem, id: &str) {
        self.emit(ModelEvent::ItemAdded { item, id: Some(id.into()), output_index: Some(self.items - 1) });
    }

    fn done(&mut self, item: ResponseItem, id: String) {
        self.written += serde_json::to_string(&item).map_or(0, |json| json.len());
        self.emit(ModelEvent::ItemDone { item, id: Some(id), output_index: Some(self.items - 1) });
    }

    fn emit(&mut self, event: ModelEvent) {
        self.push(Ok(event));
    }

    fn push(&mut self, event: Result<ModelEvent, crate::ModelError>) {
        self.events.push((std::mem::take(&mut self.due), event));
    }
}

/// Marks reasoning so that it is never sent to a provider.
fn rehearsal_origin() -> Option<String> {
    Some(REHEARSAL_ORIGIN.into())
}

/// Splits a text into words, each with the white space behind it.
fn pieces(text: &str) -> Vec<String> {
    text.split_inclusive(char::is_whitespace).map(str::to_owned).collect()
}
