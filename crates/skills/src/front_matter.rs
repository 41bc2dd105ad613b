//! `SKILL.md`: a head in YAML between two lines of `---`, then the instructions.

use std::fmt;

use crate::yaml::{self, Node, YamlError};

pub(crate) const MAX_NAME: usize = 64;
pub(crate) const MAX_TEXT: usize = 1024;

/// What the head of a `SKILL.md` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontMatter {
    /// `None`: the skill is named like its folder.
    pub name: Option<String>,
    pub description: String,
    pub short_description: Option<String>,
}

/// Why a `SKILL.md` is no skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillFileError {
    Unreadable(String),
    NoFrontMatter,
    Yaml(String),
    MissingDescription,
    TooLong { field: &'static str, limit: usize },
}

impl fmt::Display for SkillFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(reason) => write!(f, "failed to read file: {reason}"),
            Self::NoFrontMatter => f.write_str("missing YAML frontmatter delimited by ---"),
            Self::Yaml(error) => write!(f, "invalid YAML: {error}"),
            Self::MissingDescription => f.write_str("missing field `description`"),
            Self::TooLong { field, limit } => {
                write!(f, "invalid {field}: exceeds maximum length of {limit} characters")
            }
        }
    }
}

impl FrontMatter {
    /// Parses the text of a `SKILL.md`.
    pub fn parse(text: &str) -> Result<Self, SkillFileError> {
        let head = head(text).ok_or(SkillFileError::NoFrontMatter)?;
        // Positions are those in the file, whose first line is the delimiter.
        let located = |error: YamlError| SkillFileError::Yaml(YamlError { line: error.line + 1, ..error }.to_string());
        let head = yaml::parse(head).map_err(located)?;
        match &head {
            Node::Map(_) | Node::Null => {}
            other => return Err(SkillFileError::Yaml(format!("expected a map, found {}", other.kind()))),
        }
        let metadata = match head.get("metadata") {
            Some(Node::Map(_) | Node::Null) | None => head.get("metadata"),
            Some(other) => {
                return Err(SkillFileError::Yaml(format!("metadata: expected a map, found {}", other.kind())));
            }
        };
        let description = field(head.get("description"), "description")?.ok_or(SkillFileError::MissingDescription)?;
        let short = metadata.and_then(|metadata| metadata.get("short-description"));
        Ok(Self {
            name: field(head.get("name"), "name")?,
            description: within(description, "description", MAX_TEXT)?,
            short_description: field(short, "metadata.short-description")?
                .map(|text| within(text, "metadata.short-description", MAX_TEXT))
                .transpose()?,
        })
    }
}

/// Returns the text between the delimiters; `None` without both, or when nothing is between them.
fn head(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once('\n')?;
    if first.trim() != "---" {
        return None;
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim() == "---" {
            return Some(&rest[..end]).filter(|head| !head.trim().is_empty());
        }
        end += line.len();
    }
    None
}

/// Returns a text in one line; `None` when it is missing or empty.
fn field(node: Option<&Node>, name: &'static str) -> Result<Option<String>, SkillFileError> {
    match node {
        None | Some(Node::Null) => Ok(None),
        Some(Node::Scalar(text)) => Ok(Some(one_line(text)).filter(|text| !text.is_empty())),
        Some(other) => Err(SkillFileError::Yaml(format!("{name}: expected a text, found {}", other.kind()))),
    }
}

/// Refuses a text that is too long, counted in characters.
pub(crate) fn within(text: String, field: &'static str, limit: usize) -> Result<String, SkillFileError> {
    if text.chars().count() > limit { Err(SkillFileError::TooLong { field, limit }) } else { Ok(text) }
}

/// Collapses runs of white space, line ends included, to one space.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(text: &str) -> String {
        FrontMatter::parse(text).unwrap_err().to_string()
    }

    fn matter(name: Option<&str>, description: &str, short: Option<&str>) -> Result<FrontMatter, SkillFileError> {
        Ok(FrontMatter {
            name: name.map(Into::into),
            description: description.into(),
            short_description: short.map(Into::into),
        })
    }

    #[test]
    fn fields_become_one_line() {
        let text = "---\nname: two\n  words\ndescription: |\n  first\n  second\nmetadata:\n  short-description: brief\n---\nBody";
        assert_eq!(FrontMatter::parse(text), matter(Some("two words"), "first second", Some("brief")));
        assert_eq!(FrontMatter::parse("  ---  \r\ndescription: 3\r\n --- \r\n"), matter(None, "3", None));
        let empty = "---\nname: ''\ndescription: d\nlicense: MIT\nmetadata:\n  short-description: ''\n---";
        assert_eq!(FrontMatter::parse(empty), matter(None, "d", None));
    }

    #[test]
    fn a_file_without_a_delimited_head_is_refused() {
        for text in
            ["", "no head", "---\n", "---\nname: x\n", "---\n---\n", "\n---\ndescription: d\n---\n", "----\na: b\n---"]
        {
            assert_eq!(error(text), "missing YAML frontmatter delimited by ---", "{text:?}");
        }
    }

    #[test]
    fn errors_name_the_field_and_the_line() {
        assert_eq!(error("---\nname: x\n---\n"), "missing field `description`");
        assert_eq!(error("---\nname: x\ndescription: ''\n---\n"), "missing field `description`");
        assert_eq!(error("---\nname: [a]\ndescription: d\n---\n"), "invalid YAML: name: expected a text, found a list");
        assert_eq!(
            error("---\ndescription: d\nmetadata: 3\n---\n"),
            "invalid YAML: metadata: expected a map, found a text"
        );
        assert_eq!(error("---\njust text\n---\n"), "invalid YAML: expected a map, found a text");
        assert!(error("---\nname: x\ndescription: a: b\n---\n").ends_with("at line 3 column 15"));
        let long = "x".repeat(1025);
        assert_eq!(
            error(&format!("---\ndescription: {long}\n---\n")),
            "invalid description: exceeds maximum length of 1024 characters"
        );
        assert_eq!(
            error(&format!("---\ndescription: d\nmetadata:\n  short-description: {long}\n---\n")),
            "invalid metadata.short-description: exceeds maximum length of 1024 characters"
        );
    }

    #[test]
    fn lengths_are_counted_in_characters() {
        let description = "ü".repeat(MAX_TEXT);
        let parsed = FrontMatter::parse(&format!("---\ndescription: {description}\n---\n"));
        assert_eq!(parsed, matter(None, &description, None));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "(---\n)?([a-z:\\[\\]{}&*'\"|>\n -]|\\PC){0,200}(\n---\n)?") {
            if let Ok(matter) = FrontMatter::parse(&text) {
                prop_assert!(!matter.description.is_empty() && !matter.description.contains('\n'));
            }
        }
    }
}
