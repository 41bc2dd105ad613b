//! Finding tools by words, ranked by BM25.

use std::collections::HashMap;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// An index over short texts.
pub struct ToolIndex {
    /// How often each word occurs, text by text.
    texts: Vec<HashMap<String, u32>>,
    lengths: Vec<u32>,
    /// In how many texts a word occurs.
    occurs_in: HashMap<String, u32>,
    average_length: f64,
}

impl ToolIndex {
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut counted, mut lengths, mut occurs_in) = (Vec::new(), Vec::new(), HashMap::new());
        for text in texts {
            let mut counts: HashMap<String, u32> = HashMap::new();
            let mut length = 0;
            for word in words(text) {
                *counts.entry(word).or_default() += 1;
                length += 1;
            }
            for word in counts.keys() {
                *occurs_in.entry(word.clone()).or_default() += 1;
            }
            counted.push(counts);
            lengths.push(length);
        }
        let total: f64 = lengths.iter().copied().map(f64::from).sum();
        let average_length = if lengths.is_empty() { 0.0 } else { total / lengths.len() as f64 };
        Self { texts: counted, lengths, occurs_in, average_length }
    }

    /// Returns the positions of the texts that have a word of the query, the best first. Equal ones keep their order.
    pub fn search(&self, query: &str, limit: usize) -> Vec<usize> {
        let mut query: Vec<String> = words(query).collect();
        query.sort_unstable();
        query.dedup();
        let mut found: Vec<(usize, f64)> = (0..self.texts.len())
            .map(|at| (at, query.iter().map(|word| self.weight(word, at)).sum::<f64>()))
            .filter(|(_, score)| *score > 0.0)
            .collect();
        found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        found.into_iter().take(limit).map(|(at, _)| at).collect()
    }

    fn weight(&self, word: &str, at: usize) -> f64 {
        let Some(count) = self.texts[at].get(word).copied().map(f64::from) else { return 0.0 };
        let (all, having) = (self.texts.len() as f64, f64::from(self.occurs_in.get(word).copied().unwrap_or(0)));
        // Above zero also for a word that all texts have.
        let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
        let length = f64::from(self.lengths[at]) / self.average_length.max(1.0);
        rarity * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length))
    }
}

/// Words in lower case, without a plural's ending.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty()).map(|word| {
        let mut word = word.to_lowercase();
        if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
            word.pop();
        }
        word
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOOLS: [&str; 4] = [
        "calendar_create_event Creates an event in the calendar attendees title",
        "calendar_list_events Lists events of the calendar",
        "mail_send Sends a mail to somebody",
        "mail_search Searches mails",
    ];

    #[test]
    fn the_best_match_comes_first() {
        let index = ToolIndex::new(TOOLS);
        assert_eq!(index.search("create a calendar event", 8)[0], 0);
        assert_eq!(index.search("send mail", 8)[0], 2);
        assert_eq!(index.search("search emails mails", 1), [3]);
        assert_eq!(index.search("attendees", 8), [0]);
        assert_eq!(index.search("weather", 8), [] as [usize; 0]);
        assert_eq!(ToolIndex::new([]).search("x", 8), [] as [usize; 0]);
    }

    #[test]
    fn a_word_that_all_tools_have_still_finds_them_in_order() {
        let index = ToolIndex::new(["beta t0", "beta t1", "beta t2"]);
        assert_eq!(index.search("beta", 2), [0, 1]);
    }

    proptest! {
        #[test]
        fn no_query_finds_more_than_there_is(texts in prop::collection::vec(".{0,60}", 0..12), query in ".{0,60}", limit in 0usize..20) {
            let index = ToolIndex::new(texts.iter().map(String::as_str));
            let found = index.search(&query, limit);
            prop_assert!(found.len() <= limit.min(texts.len()));
            prop_assert!(found.iter().all(|at| *at < texts.len()));
        }
    }
}
