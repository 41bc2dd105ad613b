//! [`LiveOutput`]: the output of a command while it runs. Its first lines are printed as they come; later ones are
//! counted, and the last of them are shown with the command's end.

use std::collections::VecDeque;

use loomd_protocol::ThreadItem;

use super::clean::lines;
use super::fold::Fold;

/// The fold of a command's output.
pub const OUTPUT: Fold = Fold { first: 6, last: 4 };

/// The longest line that is kept; the rest of a longer one is dropped.
const MAX_LINE: usize = 4096;

pub struct LiveOutput {
    /// The item as it was started.
    pub item: ThreadItem,
    /// Text after the last line end.
    partial: String,
    /// Lines that may be printed at once.
    ready: Vec<String>,
    /// The last lines beyond those.
    tail: VecDeque<String>,
    /// Lines that are printed.
    printed: usize,
    total: usize,
}

impl LiveOutput {
    pub fn new(item: ThreadItem) -> Self {
        Self { item, partial: String::new(), ready: Vec::new(), tail: VecDeque::new(), printed: 0, total: 0 }
    }

    pub fn push(&mut self, delta: &str) {
        for piece in delta.split_inclusive('\n') {
            let room = MAX_LINE.saturating_sub(self.partial.len());
            let text = piece.strip_suffix('\n');
            let added = text.unwrap_or(piece);
            self.partial.push_str(&added[..added.floor_char_boundary(room)]);
            if text.is_some() {
                let line = std::mem::take(&mut self.partial);
                self.line(shown(&line));
            }
        }
    }

    fn line(&mut self, line: String) {
        self.total += 1;
        if self.total <= OUTPUT.first {
            self.ready.push(line);
            return;
        }
        self.tail.push_back(line);
        if self.tail.len() > OUTPUT.last + 1 {
            self.tail.pop_front();
        }
    }

    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the lines to print now.
    pub fn take_ready(&mut self) -> Vec<String> {
        self.printed += self.ready.len();
        std::mem::take(&mut self.ready)
    }

    pub fn printed(&self) -> usize {
        self.printed
    }

    /// The number of complete lines.
    pub fn total(&self) -> usize {
        self.total
    }

    /// The last line, if it is not printed.
    pub fn latest(&self) -> Option<String> {
        let partial = shown(&self.partial);
        if partial.trim().is_empty() { self.tail.back().cloned() } else { Some(partial) }
    }

    /// The lines that are not printed, and the number of lines left out before them. For a command without an end.
    pub fn rest(mut self) -> (Vec<String>, usize, Vec<String>) {
        if !self.partial.trim().is_empty() {
            let line = std::mem::take(&mut self.partial);
            self.line(shown(&line));
        }
        let hidden = self.total - self.printed - self.ready.len() - self.tail.len();
        (self.ready, hidden, self.tail.into())
    }
}

/// The line as a terminal shows it.
fn shown(line: &str) -> String {
    lines(line).into_iter().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn live() -> LiveOutput {
        let item = json!({ "type": "plan", "id": "p", "text": "" });
        LiveOutput::new(serde_json::from_value(item).unwrap())
    }

    #[test]
    fn the_first_lines_are_ready_at_once_and_the_last_are_kept() {
        let mut output = live();
        output.push("one\ntw");
        assert_eq!((output.take_ready(), output.latest()), (vec!["one".to_owned()], Some("tw".to_owned())));
        output.push("o\n");
        assert_eq!((output.take_ready(), output.latest()), (vec!["two".to_owned()], None));
        output.push(&(3..=20).map(|number| format!("{number}\n")).collect::<String>());
        assert_eq!((output.take_ready().join(" ").as_str(), output.latest().as_deref()), ("3 4 5 6", Some("20")));
        output.push("end");
        let (ready, hidden, tail) = output.rest();
        assert_eq!((ready, hidden, tail.join(" ").as_str()), (vec![], 10, "17 18 19 20 end"));
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_chunks(text in "[ab\n\r]{0,60}", at in 0usize..60) {
            let at = at.min(text.len());
            let (mut whole, mut parts) = (live(), live());
            whole.push(&text);
            parts.push(&text[..at]);
            parts.push(&text[at..]);
            prop_assert_eq!(whole.rest(), parts.rest());
        }
    }
}
