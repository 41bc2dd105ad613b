//! Events for wires that know pieces of text but no items: opens an item when its first piece comes, and
//! closes it when something else begins.

use std::collections::VecDeque;

use loomd_protocol::{ContentItem, ReasoningItemContent, ReasoningItemReasoningSummary, ResponseItem};

use crate::transcript::Seal;
use crate::{ModelEvent, TokenUsage};

/// Where the text of reasoning is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Summary,
    Content,
}

#[derive(Default)]
pub(crate) struct Composer {
    events: VecDeque<ModelEvent>,
    open: Option<Open>,
    /// How many items there have been.
    items: u64,
}

enum Open {
    Message { id: String, text: String },
    Reasoning { id: String, text: String, place: Place, seal: Option<Seal> },
}

impl Composer {
    /// The next event.
    pub fn take(&mut self) -> Option<ModelEvent> {
        self.events.pop_front()
    }

    /// A piece of a message.
    pub fn text(&mut self, delta: String) {
        if delta.is_empty() {
            return;
        }
        if !matches!(self.open, Some(Open::Message { .. })) {
            self.close();
            let id = fresh("msg");
            self.added(message(String::new()), &id);
            self.open = Some(Open::Message { id, text: String::new() });
        }
        if let Some(Open::Message { id, text }) = &mut self.open {
            text.push_str(&delta);
            self.events.push_back(ModelEvent::TextDelta { item_id: Some(id.clone()), delta });
        }
    }

    /// Begins reasoning that may turn out to have no text.
    pub fn begin_reasoning(&mut self, place: Place) {
        if matches!(self.open, Some(Open::Reasoning { .. })) {
            return;
        }
        self.close();
        let id = fresh("rs");
        self.added(reasoning(String::new(), place, None), &id);
        if place == Place::Summary {
            self.events.push_back(ModelEvent::SummaryPartAdded { item_id: Some(id.clone()), index: 0 });
        }
        self.open = Some(Open::Reasoning { id, text: String::new(), place, seal: None });
    }

    /// A piece of reasoning.
    pub fn reasoning(&mut self, delta: String, place: Place) {
        if delta.is_empty() {
            return;
        }
        self.begin_reasoning(place);
        if let Some(Open::Reasoning { id, text, place, .. }) = &mut self.open {
            text.push_str(&delta);
            let (item_id, index) = (Some(id.clone()), 0);
            self.events.push_back(match place {
                Place::Summary => ModelEvent::SummaryDelta { item_id, index, delta },
                Place::Content => ModelEvent::ReasoningDelta { item_id, index, delta },
            });
        }
    }

    /// What the provider wants back with the reasoning that is open.
    pub fn seal(&mut self, new: Seal) {
        if let Some(Open::Reasoning { seal, .. }) = &mut self.open {
            *seal = Some(new);
        }
    }

    /// Ends what is open.
    pub fn close(&mut self) {
        let (id, item) = match self.open.take() {
            None => return,
            Some(Open::Message { id, text }) => (id, message(text)),
            Some(Open::Reasoning { id, text, place, seal }) => (id, reasoning(text, place, seal.as_ref())),
        };
        self.done(item, id);
    }

    /// An item that comes whole.
    pub fn item(&mut self, item: ResponseItem) {
        self.close();
        self.done(item, fresh("item"));
    }

    /// Reasoning that nobody can read.
    pub fn sealed(&mut self, seal: &Seal) {
        self.close();
        let item = reasoning(String::new(), Place::Summary, Some(seal));
        self.done(item, fresh("rs"));
    }

    /// The last event.
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

fn reasoning(text: String, place: Place, seal: Option<&Seal>) -> ResponseItem {
    let (mut summary, mut content) = (Vec::new(), None);
    match place {
        _ if text.is_empty() => {}
        Place::Summary => summary.push(ReasoningItemReasoningSummary::SummaryText { text }),
        Place::Content => content = Some(vec![ReasoningItemContent::ReasoningText { text }]),
    }
    ResponseItem::Reasoning { summary, content, encrypted_content: seal.map(Seal::to_string) }
}

/// An id that no other item has.
pub(crate) fn fresh(prefix: &str) -> String {
    format!("{prefix}_{:016x}", fastrand::u64(..))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ModelError;
    use crate::stream::Decode;

    /// Feeds a decoder and takes what it makes of it, which has to be well formed: pieces belong to an item
    /// that is open, and nothing follows the end.
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
