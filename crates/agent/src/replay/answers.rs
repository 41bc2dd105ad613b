//! One answer of the model: from its records in a rollout to the lines of a scenario. A message or reasoning that was
//! published and is not an item of the conversation is one whose stream broke; the model call was then retried.

use loomd_protocol::{ContentItem, JsonValue, ReasoningItemContent, ReasoningItemReasoningSummary, ResponseItem};
use loomd_store::rollout::{AgentMessage, TokenUsage};
use serde_json::json;

use crate::visible::text as visible_text;

/// A record of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AnswerPart {
    Item(ResponseItem),
    /// A published message.
    Message(AgentMessage),
    /// A published summary of reasoning, with the item's id.
    Summary(Option<String>, String),
    /// A published text of reasoning, with the item's id.
    Reasoning(Option<String>, String),
    /// The id of the next tool call that the provider ran itself.
    HostedId(String),
    /// The model that answered in place of the requested one.
    Model(String),
    Usage(TokenUsage),
}

#[derive(Default)]
pub(super) struct Answer {
    pieces: Vec<(usize, AnswerPart)>,
}

impl Answer {
    pub fn push(&mut self, at: usize, piece: AnswerPart) {
        self.pieces.push((at, piece));
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub fn ends_with_image(&self) -> bool {
        matches!(self.pieces.last(), Some((_, AnswerPart::Item(ResponseItem::ImageGenerationCall { .. }))))
    }

    /// Removes the token usage if it is the last part. Returns it with its line number.
    pub fn pop_usage(&mut self) -> Option<(usize, TokenUsage)> {
        match self.pieces.pop_if(|(_, piece)| matches!(piece, AnswerPart::Usage(_)))? {
            (at, AnswerPart::Usage(usage)) => Some((at, usage)),
            _ => None,
        }
    }

    /// The lines of the scenario. `fails`: the kind of error that the answer ends with.
    pub fn scenario(&self, fails: Option<&str>) -> String {
        let mut out = ScenarioLines::default();
        out.begin();
        let mut shown: Vec<&AnswerPart> = self.pieces.iter().map(|(_, piece)| piece).collect();
        let mut took = None;
        let mut hosted = None;
        for (_, piece) in &self.pieces {
            match piece {
                AnswerPart::Item(item) => {
                    out.mend();
                    let id = match item {
                        ResponseItem::WebSearchCall { .. } | ResponseItem::ImageGenerationCall { .. } => hosted.take(),
                        item => claim(&mut shown, item),
                    };
                    out.done(item, id);
                }
                AnswerPart::HostedId(id) => hosted = Some(id.clone()),
                AnswerPart::Model(model) => out.line(json!({ "type": "loomd.model", "model": model })),
                AnswerPart::Usage(usage) => took = Some(*usage),
                AnswerPart::Message(_) | AnswerPart::Summary(..) | AnswerPart::Reasoning(..) => {
                    if !self.is_whole(piece) {
                        out.broken(piece);
                    }
                }
            }
        }
        out.mend();
        match fails {
            Some(kind) => out.line(json!({ "type": "loomd.error", "kind": kind })),
            None => out.line(completed(took)),
        }
        out.text
    }

    /// Whether a published part belongs to an item of the conversation.
    fn is_whole(&self, shown: &AnswerPart) -> bool {
        self.pieces.iter().any(|(_, piece)| matches!(piece, AnswerPart::Item(item) if shows(item, shown)))
    }
}

/// The id under which an item was published. Removes the part that has it, so that no two items get the same id.
fn claim(shown: &mut Vec<&AnswerPart>, item: &ResponseItem) -> Option<String> {
    let at = shown.iter().position(|piece| shows(item, piece))?;
    match shown.remove(at) {
        AnswerPart::Message(message) => message.item_id.clone(),
        AnswerPart::Summary(id, _) | AnswerPart::Reasoning(id, _) => id.clone(),
        _ => None,
    }
}

/// Whether `shown` is the published form of the item.
fn shows(item: &ResponseItem, shown: &AnswerPart) -> bool {
    match (item, shown) {
        (ResponseItem::Message { content, .. }, AnswerPart::Message(message)) => {
            let text: String = content
                .iter()
                .filter_map(|part| match part {
                    ContentItem::OutputText { text } | ContentItem::InputText { text } => Some(text.as_str()),
                    ContentItem::InputImage { .. } => None,
                })
                .collect();
            // A plan is separated from the text only in plan mode.
            text == message.message
                || [false, true].into_iter().any(|plans| visible_text(&text, plans) == message.message)
        }
        (ResponseItem::Reasoning { summary, .. }, AnswerPart::Summary(_, shown)) => {
            summary.iter().any(|ReasoningItemReasoningSummary::SummaryText { text }| text == shown)
        }
        (ResponseItem::Reasoning { content, .. }, AnswerPart::Reasoning(_, shown)) => {
            content.iter().flatten().any(|part| match part {
                ReasoningItemContent::ReasoningText { text } | ReasoningItemContent::Text { text } => text == shown,
            })
        }
        _ => false,
    }
}

/// An assistant message.
pub(super) fn said(text: &str) -> ResponseItem {
    let content = vec![ContentItem::OutputText { text: text.into() }];
    ResponseItem::Message { role: "assistant".into(), content, end_turn: None, phase: None, id: None }
}

fn completed(took: Option<TokenUsage>) -> JsonValue {
    let usage = took.map(|usage| {
        json!({
            "input_tokens": usage.input_tokens,
            "input_tokens_details": { "cached_tokens": usage.cached_input_tokens },
            "output_tokens": usage.output_tokens,
            "output_tokens_details": { "reasoning_tokens": usage.reasoning_output_tokens },
            "total_tokens": usage.total_tokens,
        })
    });
    json!({ "type": "response.completed", "response": { "id": "recorded", "usage": usage } })
}

#[derive(Default)]
struct ScenarioLines {
    text: String,
    /// The item that was started when the stream broke.
    open: Option<UnfinishedItem>,
}

/// An item that was started and never completed: a message, after which nothing follows, or reasoning, with the number
/// of its texts so far.
enum UnfinishedItem {
    Message,
    Reasoning { id: Option<String>, summaries: i64, contents: i64 },
}

impl ScenarioLines {
    fn begin(&mut self) {
        self.line(json!({ "answer": {} }));
    }

    fn line(&mut self, line: JsonValue) {
        self.text += &format!("{line}\n");
    }

    fn done(&mut self, item: &ResponseItem, id: Option<String>) {
        let mut item = json!(item);
        if let Some(id) = id {
            item["id"] = id.into();
        }
        self.line(json!({ "type": "response.output_item.done", "item": item }));
    }

    /// Adds a part that was published before the stream broke. A stream breaks at the latest after its first unfinished
    /// message.
    fn broken(&mut self, piece: &AnswerPart) {
        match piece {
            AnswerPart::Message(AgentMessage { message, phase, item_id, .. }) => {
                if matches!(self.open, Some(UnfinishedItem::Message)) {
                    self.mend();
                }
                let item =
                    json!({ "type": "message", "role": "assistant", "content": [], "phase": phase, "id": item_id });
                self.line(json!({ "type": "response.output_item.added", "item": item }));
                self.line(json!({ "type": "response.output_text.delta", "item_id": item_id, "delta": message }));
                self.open = Some(UnfinishedItem::Message);
            }
            AnswerPart::Summary(id, text) | AnswerPart::Reasoning(id, text) => {
                let (mut summaries, mut contents) = match self.open.take() {
                    Some(UnfinishedItem::Reasoning { id: open, summaries, contents }) if open == *id => {
                        (summaries, contents)
                    }
                    other => {
                        self.open = other;
                        self.mend();
                        let item = json!({ "type": "reasoning", "summary": [], "id": id });
                        self.line(json!({ "type": "response.output_item.added", "item": item }));
                        (0, 0)
                    }
                };
                let (kind, name, index) = match piece {
                    AnswerPart::Summary(..) => {
                        ("response.reasoning_summary_text.delta", "summary_index", &mut summaries)
                    }
                    _ => ("response.reasoning_text.delta", "content_index", &mut contents),
                };
                self.line(json!({ "type": kind, "item_id": id, name: *index, "delta": text }));
                *index += 1;
                self.open = Some(UnfinishedItem::Reasoning { id: id.clone(), summaries, contents });
            }
            _ => {}
        }
    }

    /// If an item is unfinished, ends the answer with a broken stream and begins the retry.
    fn mend(&mut self) {
        if self.open.take().is_some() {
            self.line(json!({ "type": "loomd.error", "kind": "disconnected", "retry_after_ms": 0 }));
            self.begin();
        }
    }
}
