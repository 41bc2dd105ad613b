//! Builds [`ModelEvent`]s for wires that stream text without items: opens an item at its first delta, and closes it
//! when another one begins.

use std::collections::VecDeque;

use loomd_protocol::{ContentItem, ReasoningItemContent, ReasoningItemReasoningSummary, ResponseItem};

use crate::transcript::ReasoningOrigin;
use crate::{ModelEvent, TokenUsage};

/// The part of a reasoning item that its text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReasoningKind {
    Summary,
    Content,
}

#[derive(Default)]
pub(crate) struct Composer {
    events: VecDeque<ModelEvent>,
    open: Option<OpenItem>,
    /// The number of items that are done.
    items: u64,
}

enum OpenItem {
    Message { id: String, text: String },
    Reasoning { id: String, text: String, kind: ReasoningKind, origin: Option<ReasoningOrigin> },
}

impl Composer {
    /// Takes the next event.
    pub fn take(&mut self) -> Option<ModelEvent> {
        self.events.pop_front()
    }

    /// Appends to the open message, or opens one.
    pub fn text(&mut self, delta: String) {
        if delta.is_empty() {
            return;
        }
        if !matches!(self.open, Some(OpenItem::Message { .. })) {
            self.close();
            let id = new_id("msg");
            self.added(message(String::new()), &id);
            self.open = Some(OpenItem::Message { id, text: String::new() });
        }
        if let Some(OpenItem::Message { id, text }) = &mut self.open {
            text.push_str(&delta);
            self.events.push_back(ModelEvent::TextDelta { item_id: Some(id.clone()), delta });
        }
    }

    /// Opens a reasoning item, which may turn out to have no text.
    pub fn begin_reasoning(&mut self, kind: ReasoningKind) {
        if matches!(self.open, Some(OpenItem::Reasoning { .. })) {
            return;
        }
        self.close();
        let id = new_id("rs");
        self.added(reasoning(String::new(), kind, None), &id);
        if kind == ReasoningKind::Summary {
            self.events.push_back(ModelEvent::SummaryPartAdded { item_id: Some(id.clone()), index: 0 });
        }
        self.open = Some(OpenItem::Reasoning { id, text: String::new(), kind, origin: None });
    }

    /// Appends to the open reasoning item, or opens one.
    pub fn reasoning(&mut self, delta: String, kind: ReasoningKind) {
        if delta.is_empty() {
            return;
        }
        self.begin_reasoning(kind);
        if let Some(OpenItem::Reasoning { id, text, kind, .. }) = &mut self.open {
            text.push_str(&delta);
            let (item_id, index) = (Some(id.clone()), 0);
            self.events.push_back(match kind {
                ReasoningKind::Summary => ModelEvent::SummaryDelta { item_id, index, delta },
                ReasoningKind::Content => ModelEvent::ReasoningDelta { item_id, index, delta },
            });
        }
    }

    /// Sets the origin of the open reasoning item: what its provider needs to take it back.
    pub fn set_origin(&mut self, new: ReasoningOrigin) {
        if let Some(OpenItem::Reasoning { origin, .. }) = &mut self.open {
            *origin = Some(new);
        }
    }

    /// Closes the open item.
    pub fn close(&mut self) {
        let (id, item) = match self.open.take() {
            None => return,
            Some(OpenItem::Message { id, text }) => (id, message(text)),
            Some(OpenItem::Reasoning { id, text, kind, origin }) => (id, reasoning(text, kind, origin.as_ref())),
        };
        self.done(item, id);
    }

    /// Emits a complete item.
    pub fn item(&mut self, item: ResponseItem) {
        self.close();
        self.done(item, new_id("item"));
    }

    /// Emits a reasoning item without readable text.
    pub fn opaque_reasoning(&mut self, origin: &ReasoningOrigin) {
        self.close();
        let item = reasoning(String::new(), ReasoningKind::Summary, Some(origin));
        self.done(item, new_id("rs"));
    }

    /// Closes the open item and emits the last event.
    pub fn complete(&mut self, response_id: String, usage: Option<TokenUsage>) {
        self.close();
        self.events.push_back(ModelEvent::Completed { response_id, usage });
    }

    fn added(&mut self, item: ResponseItem, id: &str) {
        let output_index = Some(self.items);
        self.events.push_back(ModelEvent::ItemAdded { item, id: Some(id.into()), output_index });
    }

    fn done(&mut self, item: ResponseItem, id: String) {
        let output_index = Some(self.items);
        self.items += 1;
        self.events.push_back(ModelEvent::ItemDone { item, id: Some(id), output_index });
    }
}

fn message(text: String) -> ResponseItem {
    let content = if text.is_empty() { Vec::new() } else { vec![ContentItem::OutputText { text }] };
    ResponseItem::Message { role: "assistant".into(), content, end_turn: None, phase: None, id: None }
}

fn reasoning(text: String, kind: ReasoningKind, origin: Option<&ReasoningOrigin>) -> ResponseItem {
    let (mut summary, mut content) = (Vec::new(), None);
    match kind {
        _ if text.is_empty() => {}
        ReasoningKind::Summary => summary.push(ReasoningItemReasoningSummary::SummaryText { text }),
        ReasoningKind::Content => content = Some(vec![ReasoningItemContent::ReasoningText { text }]),
    }
    ResponseItem::Reasoning { summary, content, encrypted_content: origin.map(ReasoningOrigin::to_string) }
}

/// Returns a random id with this prefix.
pub(crate) fn new_id(prefix: &str) -> String {
    format!("{prefix}_{:016x}", fastrand::u64(..))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ModelError;
    use crate::stream::Decode;

    /// Feeds a decoder and returns its events. Asserts that they are well formed: deltas belong to the open item, and
    /// nothing follows `Completed`.
    pub fn decode(mut decoder: impl Decode, data: &[String]) -> (Vec<ModelEvent>, Option<ModelError>) {
        let mut composer = Composer::default();
        let mut read = Ok(());
        for data in data {
            read = decoder.read(data, &mut composer);
            if read.is_err() || matches!(composer.events.back(), Some(ModelEvent::Completed { .. })) {
                break;
            }
        }
        let error = read.and_then(|()| decoder.end(&mut composer)).err();
        let events: Vec<_> = std::iter::from_fn(|| composer.take()).collect();
        let mut open = None;
        for (index, event) in events.iter().enumerate() {
            match event {
                ModelEvent::ItemAdded { id, .. } => {
                    assert_eq!(open, None, "{events:?}");
                    open = id.clone();
                }
                ModelEvent::ItemDone { id, .. } => assert!(open.is_none() || open.take() == *id, "{events:?}"),
                ModelEvent::TextDelta { item_id, .. }
                | ModelEvent::SummaryDelta { item_id, .. }
                | ModelEvent::ReasoningDelta { item_id, .. } => assert_eq!(open, *item_id, "{events:?}"),
                ModelEvent::Completed { .. } => assert_eq!((index + 1, &open), (events.len(), &None), "{events:?}"),
                _ => {}
            }
        }
        let completed = matches!(events.last(), Some(ModelEvent::Completed { .. }));
        assert_eq!(completed, error.is_none(), "{events:?} {error:?}");
        (events, error)
    }
}
