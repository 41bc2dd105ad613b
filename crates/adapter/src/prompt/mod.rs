//! [`Prompt`]: sections of markdown, their parameters and their tools, checked when it is built.

mod section;
mod template;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

pub use section::Section;
use section::{Body, Visibility};
use template::Template;

use crate::expansion::Expansion;
use crate::tool::Tool;

/// What a model is asked, and the tools it may call for the answer.
///
/// ```
/// use loomd_adapter::{Prompt, Section};
///
/// let prompt = Prompt::new("demo", "greeting")
///     .section(Section::new("task", "Task", "Greet ${name} in one sentence."))
///     .param("name", "Ada")
///     .build()?;
/// assert_eq!(prompt.render().text, "## 1. Task\n\nGreet Ada in one sentence.");
/// # Ok::<(), loomd_adapter::PromptError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Prompt {
    namespace: String,
    key: String,
    sections: Vec<Section>,
    params: BTreeMap<String, String>,
    tools: Vec<Tool>,
    /// Paths of hidden sections that are shown.
    shown: BTreeSet<String>,
}

/// The text of a prompt, and the tools of its visible sections.
#[derive(Clone, Debug)]
pub struct Rendered {
    pub text: String,
    pub tools: Vec<Tool>,
}

impl Prompt {
    #[allow(clippy::new_ret_no_self, reason = "a prompt is checked when it is built")]
    pub fn new(namespace: impl Into<String>, key: impl Into<String>) -> PromptBuilder {
        PromptBuilder {
            namespace: namespace.into(),
            key: key.into(),
            sections: Vec::new(),
            params: BTreeMap::new(),
            tools: Vec::new(),
            fault: None,
        }
    }

    /// Namespace and key, as `namespace/key`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.namespace, self.key)
    }

    /// Shows a hidden section, and those that it is in. The path has a dot between keys: `rules.style`.
    pub fn show(&mut self, path: &str) -> Result<(), PromptError> {
        let known = paths(&self.sections).iter().any(|(known, _)| known == path);
        if !known {
            return Err(PromptError::UnknownSection { path: path.to_owned() });
        }
        let mut whole = String::new();
        for key in path.split('.') {
            if !whole.is_empty() {
                whole.push('.');
            }
            whole.push_str(key);
            self.shown.insert(whole.clone());
        }
        Ok(())
    }

    /// Shows the sections that a tool has requested.
    pub fn expand(&mut self, expansion: &Expansion) -> Result<(), PromptError> {
        expansion.requests.iter().try_for_each(|request| self.show(&request.section))
    }

    /// The paths of the sections that are hidden now.
    pub fn hidden(&self) -> Vec<String> {
        let hidden = |(path, section): &(String, &Section)| self.is_hidden(path, section);
        paths(&self.sections).into_iter().filter(hidden).map(|(path, _)| path).collect()
    }

    pub fn render(&self) -> Rendered {
        let mut rendered = Rendered { text: String::new(), tools: self.tools.clone() };
        self.render_sections(&self.sections, "", "", &mut rendered);
        rendered.text.truncate(rendered.text.trim_end().len());
        rendered
    }

    fn render_sections(&self, sections: &[Section], under: &str, number: &str, rendered: &mut Rendered) {
        let mut index = 0;
        for section in sections {
            let path = join(under, &section.key);
            let text = match (&section.visibility, self.is_hidden(&path, section)) {
                (_, false) => self.fill(&section.body),
                (Visibility::Summary(summary), true) => {
                    format!("{summary}\n\n(The section `{path}` is not shown in full.)")
                }
                (_, true) => continue,
            };
            index += 1;
            let number = format!("{number}{index}.");
            let level = "#".repeat((number.matches('.').count() + 1).min(6));
            let heading = format!("{level} {number} {}\n\n{}\n\n", section.title, text.trim());
            rendered.text.push_str(&heading);
            if !self.is_hidden(&path, section) {
                rendered.tools.extend(section.tools.iter().cloned());
                self.render_sections(&section.children, &path, &number, rendered);
            }
        }
    }

    fn is_hidden(&self, path: &str, section: &Section) -> bool {
        !matches!(section.visibility, Visibility::Full) && !self.shown.contains(path)
    }

    fn fill(&self, body: &Body) -> String {
        match body {
            Body::Literal(text) => text.clone(),
            // Parsed without an error when the prompt was built.
            Body::Template(text) => Template::parse(text).map(|it| it.fill(&self.params)).unwrap_or_default(),
        }
    }
}

/// Collects the parts of a [`Prompt`]; [`build`](Self::build) checks them.
#[derive(Clone, Debug)]
pub struct PromptBuilder {
    namespace: String,
    key: String,
    sections: Vec<Section>,
    params: BTreeMap<String, String>,
    tools: Vec<Tool>,
    /// The first error of a call before [`build`](Self::build).
    fault: Option<PromptError>,
}

impl PromptBuilder {
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// A tool that the model always has. [`Section::tool`] adds one that depends on a section.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Sets the parameter `${name}`: texts as they are, other values as JSON.
    pub fn param(mut self, name: impl Into<String>, value: impl Serialize) -> Self {
        let name = name.into();
        match serde_json::to_value(value) {
            Ok(value) => self.set(name, value),
            Err(error) => self.fail(PromptError::BadParam { name, reason: error.to_string() }),
        }
        self
    }

    /// Sets a parameter per field of a struct.
    pub fn params(mut self, params: &impl Serialize) -> Self {
        match serde_json::to_value(params) {
            Ok(Value::Object(fields)) => fields.into_iter().for_each(|(name, value)| self.set(name, value)),
            Ok(_) => self.fail(PromptError::BadParam { name: "params".into(), reason: "expected a struct".into() }),
            Err(error) => self.fail(PromptError::BadParam { name: "params".into(), reason: error.to_string() }),
        }
        self
    }

    pub fn build(self) -> Result<Prompt, PromptError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        check_key(&self.namespace)?;
        check_key(&self.key)?;
        check_sections(&self.sections)?;
        let used = used_params(&self.sections)?;
        if let Some((section, name)) = used.iter().find(|(_, name)| !self.params.contains_key(name)) {
            return Err(PromptError::MissingParam { name: name.clone(), section: section.clone() });
        }
        if let Some(name) = self.params.keys().find(|name| !used.iter().any(|(_, used)| used == *name)) {
            return Err(PromptError::UnusedParam { name: name.clone() });
        }
        let mut names = BTreeSet::new();
        let of_sections = paths(&self.sections).into_iter().flat_map(|(_, section)| &section.tools);
        for tool in self.tools.iter().chain(of_sections) {
            tool.check()?;
            if !names.insert(tool.name()) {
                return Err(PromptError::DuplicateTool { name: tool.name().to_owned() });
            }
        }
        let Self { namespace, key, sections, params, tools, .. } = self;
        Ok(Prompt { namespace, key, sections, params, tools, shown: BTreeSet::new() })
    }

    fn set(&mut self, name: String, value: Value) {
        let text = match value {
            Value::String(text) => text,
            Value::Null => String::new(),
            value => value.to_string(),
        };
        if !template::is_name(&name) {
            self.fail(PromptError::BadParam { name, reason: "not a name: expected letters, digits and `_`".into() });
        } else if self.params.insert(name.clone(), text).is_some() {
            self.fail(PromptError::BadParam { name, reason: "set twice".into() });
        }
    }

    fn fail(&mut self, error: PromptError) {
        self.fault.get_or_insert(error);
    }
}

/// What is wrong with a prompt.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptError {
    #[error("invalid key `{key}`: expected letters, digits, `_` and `-`")]
    BadKey { key: String },
    #[error("the section `{path}` has no title")]
    NoTitle { path: String },
    #[error("there are two sections `{path}`")]
    DuplicateSection { path: String },
    #[error("there is no section `{path}`")]
    UnknownSection { path: String },
    #[error("the template of section `{section}`: {reason}")]
    BadTemplate { section: String, reason: String },
    #[error("the section `{section}` needs the parameter `{name}`, which is not set")]
    MissingParam { name: String, section: String },
    #[error("the parameter `{name}` is used by no section")]
    UnusedParam { name: String },
    #[error("the parameter `{name}`: {reason}")]
    BadParam { name: String, reason: String },
    #[error("there are two tools `{name}`")]
    DuplicateTool { name: String },
    #[error("the tool `{name}`: {reason}")]
    BadTool { name: String, reason: String },
}

fn check_key(key: &str) -> Result<(), PromptError> {
    let valid = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if valid { Ok(()) } else { Err(PromptError::BadKey { key: key.to_owned() }) }
}

fn check_sections(sections: &[Section]) -> Result<(), PromptError> {
    let mut known = BTreeSet::new();
    for (path, section) in paths(sections) {
        check_key(&section.key)?;
        if section.title.trim().is_empty() {
            return Err(PromptError::NoTitle { path });
        }
        if !known.insert(path.clone()) {
            return Err(PromptError::DuplicateSection { path });
        }
    }
    Ok(())
}

/// The parameters that templates use, each with its section.
fn used_params(sections: &[Section]) -> Result<Vec<(String, String)>, PromptError> {
    let mut used = Vec::new();
    for (path, section) in paths(sections) {
        if let Body::Template(text) = &section.body {
            let template =
                Template::parse(text).map_err(|reason| PromptError::BadTemplate { section: path.clone(), reason })?;
            used.extend(template.names().map(|name| (path.clone(), name.to_owned())));
        }
    }
    Ok(used)
}

/// All sections with their paths, each before those in it.
fn paths(sections: &[Section]) -> Vec<(String, &Section)> {
    fn walk<'a>(sections: &'a [Section], under: &str, found: &mut Vec<(String, &'a Section)>) {
        for section in sections {
            let path = join(under, &section.key);
            found.push((path.clone(), section));
            walk(&section.children, &path, found);
        }
    }
    let mut found = Vec::new();
    walk(sections, "", &mut found);
    found
}

fn join(under: &str, key: &str) -> String {
    if under.is_empty() { key.to_owned() } else { format!("{under}.{key}") }
}
