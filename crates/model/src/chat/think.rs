//! `<think>` tags: a server that does not separate the reasoning of a local model sends it at the start of the text,
//! between `<think>` and `</think>`.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Splits one text into reasoning and answer. A tag may be cut between pieces, so a possible start of one is held back.
#[derive(Default)]
pub(super) struct ThinkSplitter {
    state: TagState,
    held: String,
}

#[derive(Default, PartialEq)]
enum TagState {
    #[default]
    Beginning,
    Inside,
    Outside,
}

#[derive(Debug, PartialEq)]
pub(super) enum Segment {
    Reasoning(String),
    Text(String),
}

impl ThinkSplitter {
    pub fn push(&mut self, piece: &str) -> Vec<Segment> {
        let mut segments = Vec::new();
        if self.state == TagState::Outside {
            segments.push(Segment::Text(piece.into()));
            return segments;
        }
        self.held.push_str(piece);
        if self.state == TagState::Beginning {
            let text = self.held.trim_start();
            if text.is_empty() || (text.len() < OPEN.len() && OPEN.starts_with(text)) {
                return segments;
            }
            match text.strip_prefix(OPEN) {
                Some(rest) => (self.state, self.held) = (TagState::Inside, rest.into()),
                None => self.state = TagState::Outside,
            }
        }
        if self.state == TagState::Inside {
            match self.held.find(CLOSE) {
                Some(at) => {
                    self.state = TagState::Outside;
                    segments.push(Segment::Reasoning(self.held[..at].into()));
                    self.held = self.held[at + CLOSE.len()..].trim_start().into();
                }
                None => {
                    let keep = (1..CLOSE.len()).rev().find(|n| self.held.ends_with(&CLOSE[..*n])).unwrap_or(0);
                    let thought: String = self.held.drain(..self.held.len() - keep).collect();
                    segments.push(Segment::Reasoning(thought));
                }
            }
        }
        if self.state == TagState::Outside {
            segments.push(Segment::Text(std::mem::take(&mut self.held)));
        }
        segments
    }

    /// Returns the text that was held back.
    pub fn finish(&mut self) -> Option<Segment> {
        let held = std::mem::take(&mut self.held);
        match self.state {
            _ if held.is_empty() => None,
            TagState::Inside => Some(Segment::Reasoning(held)),
            TagState::Beginning | TagState::Outside => Some(Segment::Text(held)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(pieces: &[&str]) -> (String, String) {
        let mut think = ThinkSplitter::default();
        let mut segments: Vec<_> = pieces.iter().flat_map(|piece| think.push(piece)).collect();
        segments.extend(think.finish());
        let (mut thought, mut text) = (String::new(), String::new());
        for segment in segments {
            match segment {
                Segment::Reasoning(piece) => thought += &piece,
                Segment::Text(piece) => text += &piece,
            }
        }
        (thought, text)
    }

    #[test]
    fn only_a_tag_at_the_start_of_the_text_is_reasoning() {
        for (whole, thought, text) in [
            ("plain", "", "plain"),
            ("\n<think>a\nb</think>\n\nc", "a\nb", "c"),
            ("<think>never ends", "never ends", ""),
            ("<think></think>x", "", "x"),
            ("<thin", "", "<thin"),
            ("x <think>a</think>", "", "x <think>a</think>"),
            ("<think>a</think>b</think>", "a", "b</think>"),
            ("", "", ""),
        ] {
            assert_eq!(split(&[whole]), (thought.into(), text.into()), "{whole:?}");
        }
    }

    proptest! {
        #[test]
        fn the_split_does_not_depend_on_where_pieces_are_cut(text in "(<think>)?(a|\n|<|</think>|</thi|é){0,12}", at in any::<prop::sample::Index>()) {
            let at = text.floor_char_boundary(at.index(text.len() + 1));
            let (whole, cut) = (split(&[&text]), split(&[&text[..at], &text[at..]]));
            // White space right behind the closing tag is kept when it arrives in a piece of its own.
            prop_assert_eq!((whole.0, whole.1.trim_start()), (cut.0, cut.1.trim_start()));
        }
    }
}
