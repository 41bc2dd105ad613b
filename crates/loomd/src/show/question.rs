//! Renders a question that waits for a typed line. Nothing is cut, folded or hidden, so that the user sees all of
//! what is approved.

use super::clean::visible;
use super::style::{Paint, Style};

pub struct QuestionView<'a> {
    pub title: &'a str,
    /// The subject, in full.
    pub details: &'a [String],
    pub reason: Option<&'a str>,
    /// The options, as lines.
    pub choices: &'a [String],
    /// The id of the file change to approve.
    pub item_id: Option<&'a str>,
}

impl QuestionView<'_> {
    pub(super) fn text(&self, style: Style) -> String {
        let mut text =
            format!("{} {}\n", style.paint(Paint::Yellow, "?"), style.paint(Paint::Bold, &plain(self.title)));
        for line in self.details.iter().flat_map(|detail| visible(detail)) {
            text += &format!("    {line}\n");
        }
        for line in self.reason.iter().flat_map(|reason| visible(reason)) {
            text += &format!("  {}\n", style.paint(Paint::Dim, &line));
        }
        for choice in self.choices {
            text += &format!("  {}\n", style.paint(Paint::Cyan, &plain(choice)));
        }
        text + "> "
    }
}

/// Joins the lines of a text.
fn plain(text: &str) -> String {
    visible(text).join(" ")
}
