//! The visible parts of the model's text. Citations of memories are removed; in plan mode a proposed plan, between tags
//! on lines of their own, is separated from the text. A tag may be split over deltas, so text that may be the start of
//! one is held back until more arrives.

const CITATION: (&str, &str) = ("<oai-mem-citation>", "</oai-mem-citation>");
const PLAN: (&str, &str) = ("<proposed_plan>", "</proposed_plan>");

/// A part of a message, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    PlanBegins,
    Plan(String),
    PlanEnds,
}

/// Splits a streamed message into text and plan.
pub(crate) struct MessageSplitter {
    citations: Citations,
    plans: Option<Plans>,
}

impl MessageSplitter {
    /// `plans`: whether proposed plans are separated.
    pub fn new(plans: bool) -> Self {
        Self { citations: Citations::default(), plans: plans.then(Plans::default) }
    }

    pub fn push(&mut self, text: &str) -> Vec<Piece> {
        let shown = self.citations.push(text);
        self.split(shown)
    }

    /// Ends the message. Returns the text that was held back.
    pub fn finish(&mut self) -> Vec<Piece> {
        let rest = self.citations.finish();
        let mut pieces = self.split(rest);
        if let Some(plans) = &mut self.plans {
            pieces.extend(plans.finish());
        }
        pieces
    }

    fn split(&mut self, text: String) -> Vec<Piece> {
        match &mut self.plans {
            _ if text.is_empty() => Vec::new(),
            None => vec![Piece::Text(text)],
            Some(plans) => plans.push(&text),
        }
    }
}

/// Splits a complete message into its text and its plan.
pub(crate) fn whole(text: &str, plans: bool) -> (String, Option<String>) {
    let mut visible = MessageSplitter::new(plans);
    let (mut shown, mut plan) = (String::new(), None);
    for piece in visible.push(text).into_iter().chain(visible.finish()) {
        match piece {
            Piece::Text(text) => shown.push_str(&text),
            Piece::PlanBegins => _ = plan.get_or_insert_with(String::new),
            Piece::Plan(text) => plan.get_or_insert_default().push_str(&text),
            Piece::PlanEnds => {}
        }
    }
    (shown, plan)
}

/// The text of a complete message, without its plan.
pub(crate) fn text(message: &str, plans: bool) -> String {
    whole(message, plans).0
}

/// Removes citations.
#[derive(Default)]
struct Citations {
    inside: bool,
    /// Text that may be the start of a tag.
    held: String,
}

impl Citations {
    fn push(&mut self, text: &str) -> String {
        if self.held.is_empty() && !self.inside && !text.contains('<') {
            return text.into();
        }
        let mut shown = String::new();
        self.held.push_str(text);
        loop {
            let tag = if self.inside { CITATION.1 } else { CITATION.0 };
            if let Some(at) = self.held.find(tag) {
                if !self.inside {
                    shown.push_str(&self.held[..at]);
                }
                self.held.drain(..at + tag.len());
                self.inside = !self.inside;
                continue;
            }
            let keep = partial(&self.held, tag);
            let decided = self.held.len() - keep;
            if !self.inside {
                shown.push_str(&self.held[..decided]);
            }
            self.held.drain(..decided);
            return shown;
        }
    }

    fn finish(&mut self) -> String {
        if self.inside { String::new() } else { std::mem::take(&mut self.held) }
    }
}

/// The length of the longest proper prefix of `tag` at the end of `text`.
fn partial(text: &str, tag: &str) -> usize {
    let longest = text.len().min(tag.len() - 1);
    (1..=longest).rev().find(|len| text.as_bytes().ends_with(&tag.as_bytes()[..*len])).unwrap_or(0)
}

/// Separates plans from text, line by line.
#[derive(Default)]
struct Plans {
    inside: bool,
    /// The start of a line that may be a tag.
    held: String,
    /// The current line is not a tag.
    decided: bool,
}

impl Plans {
    fn push(&mut self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for part in text.split_inclusive('\n') {
            let ends = part.ends_with('\n');
            if self.decided {
                self.emit(part, &mut pieces);
            } else {
                self.held.push_str(part);
                let tag = self.tag();
                let line = self.held.trim();
                if ends && line == tag {
                    self.held.clear();
                    self.switch(&mut pieces);
                } else if ends || !tag.starts_with(line) {
                    let line = std::mem::take(&mut self.held);
                    self.emit(&line, &mut pieces);
                    self.decided = true;
                }
            }
            if ends {
                self.decided = false;
            }
        }
        pieces
    }

    fn finish(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let line = std::mem::take(&mut self.held);
        if line.trim() == self.tag() {
            self.switch(&mut pieces);
        } else if !line.is_empty() {
            self.emit(&line, &mut pieces);
        }
        if self.inside {
            self.switch(&mut pieces);
        }
        pieces
    }

    fn tag(&self) -> &'static str {
        if self.inside { PLAN.1 } else { PLAN.0 }
    }

    fn switch(&mut self, pieces: &mut Vec<Piece>) {
        self.inside = !self.inside;
        pieces.push(if self.inside { Piece::PlanBegins } else { Piece::PlanEnds });
    }

    /// Emits text, joined with the last piece if that is of the same kind.
    fn emit(&self, text: &str, pieces: &mut Vec<Piece>) {
        match (self.inside, pieces.last_mut()) {
            (true, Some(Piece::Plan(last))) | (false, Some(Piece::Text(last))) => last.push_str(text),
            (true, _) => pieces.push(Piece::Plan(text.into())),
            (false, _) => pieces.push(Piece::Text(text.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, plans: bool, shown: &str, plan: Option<&str>) {
        assert_eq!(whole(text, plans), (shown.into(), plan.map(Into::into)), "{text:?}");
    }

    #[test]
    fn citations_are_removed_and_plans_are_separated() {
        check("Intro\n<proposed_plan>\n- 1\n- 2\n</proposed_plan>\nOutro", true, "Intro\nOutro", Some("- 1\n- 2\n"));
        check(
            "Intro\n<proposed_plan>\n- 1\n</proposed_plan>",
            false,
            "Intro\n<proposed_plan>\n- 1\n</proposed_plan>",
            None,
        );
        check("a <proposed_plan> b\n", true, "a <proposed_plan> b\n", None);
        check("<proposed_plan>\nopen", true, "", Some("open"));
        check("<proposed", true, "<proposed", None);
        check("a<oai-mem-citation>x</oai-mem-citation>b", false, "ab", None);
        check("a<oai-mem-citation>x", false, "a", None);
        check("a < b <oai", false, "a < b <oai", None);
    }

    proptest! {
        #[test]
        fn pieces_do_not_depend_on_how_the_text_is_split_into_deltas(
            parts in prop::collection::vec("[<>/a\n]|<proposed_plan>|</proposed_plan>|\n|<oai-mem-citation>|</oai-mem-citation>|é", 0..20),
            cuts in prop::collection::vec(0usize..200, 0..8),
        ) {
            let text = parts.concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| text.floor_char_boundary(at)).chain([0, text.len()]).collect();
            cuts.sort_unstable();
            let mut visible = MessageSplitter::new(true);
            let (mut shown, mut plan) = (String::new(), None::<String>);
            let mut take = |pieces: Vec<Piece>| for piece in pieces {
                match piece {
                    Piece::Text(text) => shown.push_str(&text),
                    Piece::PlanBegins => _ = plan.get_or_insert_default(),
                    Piece::Plan(text) => plan.get_or_insert_default().push_str(&text),
                    Piece::PlanEnds => {}
                }
            };
            for pair in cuts.windows(2) {
                take(visible.push(&text[pair[0]..pair[1]]));
            }
            take(visible.finish());
            prop_assert_eq!((shown, plan), whole(&text, true));
        }
    }
}
