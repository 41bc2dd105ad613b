//! [`Expansion`]: hidden sections that a tool has requested to be shown.

use std::fmt;

/// Hidden sections that tools requested to be shown. [`Prompt::expand`](crate::Prompt::expand) shows them; the prompt
/// can then be evaluated again, in the same thread if the adapter reuses threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expansion {
    pub requests: Vec<SectionRequest>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionRequest {
    /// The path of the section.
    pub section: String,
    pub reason: String,
    /// The tool that requested it.
    pub tool: String,
}

impl fmt::Display for Expansion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sections: Vec<_> = self.requests.iter().map(|request| format!("`{}`", request.section)).collect();
        write!(f, "hidden sections are needed: {}", sections.join(", "))
    }
}
