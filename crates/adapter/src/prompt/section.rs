//! [`Section`]: a titled part of a prompt.

use crate::tool::Tool;

/// A titled part of a prompt, with sections in it and tools of its own.
#[derive(Clone, Debug)]
pub struct Section {
    pub(super) key: String,
    pub(super) title: String,
    pub(super) body: Body,
    pub(super) children: Vec<Section>,
    pub(super) tools: Vec<Tool>,
    pub(super) visibility: Visibility,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    /// With parameters.
    Template(String),
    /// As it is.
    Literal(String),
}

#[derive(Clone, Debug)]
pub(super) enum Visibility {
    Full,
    /// This text in place of the section, until it is shown.
    Summary(String),
    /// Nothing, until it is shown.
    Hidden,
}

impl Section {
    /// A section with a markdown template. `${name}` is a parameter of the prompt, `$${` is the text `${`.
    pub fn new(key: impl Into<String>, title: impl Into<String>, template: impl Into<String>) -> Self {
        Self::with_body(key.into(), title.into(), Body::Template(template.into()))
    }

    /// A section with a text that has no parameters, whatever it contains.
    pub fn literal(key: impl Into<String>, title: impl Into<String>, text: impl Into<String>) -> Self {
        Self::with_body(key.into(), title.into(), Body::Literal(text.into()))
    }

    /// Hides the section, with all that is in it, until [`Prompt::show`](crate::Prompt::show).
    pub fn hidden(mut self) -> Self {
        self.visibility = Visibility::Hidden;
        self
    }

    /// Shows only this summary until [`Prompt::show`](crate::Prompt::show).
    pub fn summary(mut self, summary: impl Into<String>) -> Self {
        self.visibility = Visibility::Summary(summary.into());
        self
    }

    /// Adds a section inside of this one.
    pub fn child(mut self, section: Section) -> Self {
        self.children.push(section);
        self
    }

    /// Adds a tool that the model has while the section is shown in full.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    fn with_body(key: String, title: String, body: Body) -> Self {
        Self { key, title, body, children: Vec::new(), tools: Vec::new(), visibility: Visibility::Full }
    }
}
