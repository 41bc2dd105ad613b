//! A question that waits for a line from the keyboard. Whoever answers must have seen all of what they allow, so
//! nothing is cut, folded or hidden here.

use super::clean::visible;
use super::style::{Paint, Style};

pub struct QuestionView<'a> {
    pub title: &'a str,
    /// What it is about, in full.
    pub details: &'a [String],
    pub reason: Option<&'a str>,
    /// The lines from which to choose.
    pub choices: &'a [String],
    /// The change that it is about.
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

/// On one line.
fn plain(text: &str) -> String {
    visible(text).join(" ")
}
