//! A filter of the messages of one thread: which pieces of text occur in them, in one case. It rules out most threads that
//! do not hold a term.

use crate::search::term;
use crate::signature;

/// The bytes of the largest filter. Threads with more text are more often read in vain.
const LARGEST: usize = 16 * 1024;
const SMALLEST: usize = 16;
/// One bit per byte of text keeps a filter mostly empty, as most pieces of a text occur several times.
const TEXT_PER_BYTE: usize = 8;

/// A filter of messages that is being made.
pub struct MessageFilter {
    bits: Vec<u8>,
    text: usize,
}

impl Default for MessageFilter {
    fn default() -> Self {
        Self { bits: vec![0; LARGEST], text: 0 }
    }
}

impl MessageFilter {
    /// Adds the text of a message.
    pub fn add(&mut self, message: &str) {
        self.text += message.len();
        signature::add(&mut self.bits, &term::folded(message));
    }

    /// The filter in the size that fits the text.
    pub fn finish(mut self) -> Vec<u8> {
        let size = (self.text / TEXT_PER_BYTE).next_power_of_two().clamp(SMALLEST, LARGEST);
        while self.bits.len() > size {
            self.bits = signature::halved(&self.bits);
        }
        self.bits
    }
}

/// The pieces of a folded term, which `signature::may_hold` compares with a filter.
pub fn pieces(folded: &str) -> Vec<u8> {
    signature::pieces(folded)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::search::Term;

    #[test]
    fn a_filter_rules_out_most_terms_that_do_not_occur() {
        let mut filter = MessageFilter::default();
        filter.add(&"please say what is wrong with it ".repeat(20));
        let filter = filter.finish();
        assert!(filter.len() <= 128);
        let may_hold = |term: &str| signature::may_hold(&filter, &pieces(Term::new(term).folded()));
        assert!(may_hold("WHAT is") && may_hold("") && may_hold("x"));
        let absent = ["not to be found", "parser", "xyzzy", "documents"];
        assert!(absent.iter().filter(|term| may_hold(term)).count() <= 1);
    }

    proptest! {
        #[test]
        fn a_filter_never_rules_out_a_term_that_occurs(texts in prop::collection::vec("\\PC{0,200}", 1..4), from in 0usize..200, len in 1usize..20) {
            let mut filter = MessageFilter::default();
            texts.iter().for_each(|text| filter.add(text));
            let filter = filter.finish();
            let text: Vec<char> = texts[0].chars().collect();
            let term: String = text.iter().skip(from.min(text.len())).take(len).collect();
            let term = Term::new(&term);
            if term.find(&texts[0]).next().is_some() {
                prop_assert!(signature::may_hold(&filter, &pieces(term.folded())));
            }
        }
    }
}
