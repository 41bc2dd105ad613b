//! Sums of entries.

use std::collections::BTreeMap;

use crate::{Entry, Money, Tokens};

/// What model calls are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Day,
    Thread,
    Model,
    Client,
}

/// The sum of a group of model calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub calls: u64,
    pub tokens: Tokens,
    /// The price of the calls that have one.
    pub price: Money,
    /// Calls without a price.
    pub unpriced: u64,
}

impl Usage {
    pub fn add(&mut self, entry: &Entry) {
        let Entry::Call(call) = entry else { return };
        self.calls += 1;
        self.tokens += call.tokens;
        match call.price {
            Some(price) => self.price += price,
            None => self.unpriced += 1,
        }
    }

    /// The sums by group, in the order of their names.
    pub fn by(group: Group, entries: impl IntoIterator<Item = Entry>) -> BTreeMap<String, Self> {
        let mut sums: BTreeMap<String, Self> = BTreeMap::new();
        for entry in entries {
            let Entry::Call(call) = &entry else { continue };
            let name = match group {
                Group::Day => crate::file::day_of(call.at_ms).to_string(),
                Group::Thread => call.thread_id.clone(),
                Group::Model => format!("{}/{}", call.provider, call.model),
                Group::Client => call.client.clone().unwrap_or_default(),
            };
            sums.entry(name).or_default().add(&entry);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelCall;

    #[test]
    fn calls_are_summed_by_group() {
        let call = |model: &str, thread: &str, input, price| {
            Entry::Call(ModelCall {
                at_ms: 0,
                thread_id: thread.into(),
                provider: "p".into(),
                model: model.into(),
                tokens: Tokens { input, output: 1, ..Tokens::default() },
                price,
                ..ModelCall::default()
            })
        };
        let entries = [call("a", "t", 1, Some(Money(5))), call("a", "u", 2, None), call("b", "t", 4, Some(Money(7)))];
        let sum = |calls, input, price, unpriced| Usage {
            calls,
            tokens: Tokens { input, output: calls, ..Tokens::default() },
            price: Money(price),
            unpriced,
        };
        let by = |group| Usage::by(group, entries.clone()).into_iter().collect::<Vec<_>>();
        assert_eq!(by(Group::Model), [("p/a".into(), sum(2, 3, 5, 1)), ("p/b".into(), sum(1, 4, 7, 0))]);
        assert_eq!(by(Group::Thread), [("t".into(), sum(2, 5, 12, 0)), ("u".into(), sum(1, 2, 0, 1))]);
        assert_eq!(by(Group::Day), [("1970-01-01".into(), sum(3, 7, 12, 1))]);
    }
}
