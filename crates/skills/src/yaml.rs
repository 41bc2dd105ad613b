//! YAML of untrusted files as a tree of texts. Scalars keep the text that was written: callers know which type they
//! expect. Size, depth and the number of nodes are bounded, also of documents that repeat themselves by aliases.

use std::collections::HashMap;
use std::fmt;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

/// Longer documents are refused.
pub const MAX_BYTES: usize = 64 * 1024;
/// Nodes after aliases are expanded.
const MAX_NODES: usize = 10_000;
/// Nested collections.
const MAX_DEPTH: usize = 32;

/// A node of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// An empty value, `~` or `null`.
    Null,
    Scalar(String),
    List(Vec<Node>),
    /// In the order of the document. Keys are unique.
    Map(Vec<(String, Node)>),
}

/// Why a document was not understood. Lines and columns begin at 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    pub message: String,
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { message, line, column } = self;
        write!(f, "{message} at line {line} column {column}")
    }
}

impl Node {
    /// The value of a key; `None` also for what is no map.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Self::Map(members) => members.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Scalar(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Node]> {
        match self {
            Self::List(nodes) => Some(nodes),
            _ => None,
        }
    }

    /// What it is, for error messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Scalar(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }

    fn count(&self) -> usize {
        1 + match self {
            Self::Null | Self::Scalar(_) => 0,
            Self::List(nodes) => nodes.iter().map(Self::count).sum(),
            Self::Map(members) => members.iter().map(|(_, value)| 1 + value.count()).sum(),
        }
    }

    fn depth(&self) -> usize {
        1 + match self {
            Self::Null | Self::Scalar(_) => 0,
            Self::List(nodes) => nodes.iter().map(Self::depth).max().unwrap_or(0),
            Self::Map(members) => members.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
        }
    }
}

/// Parses the first document of a text.
pub fn parse(text: &str) -> Result<Node, YamlError> {
    if text.len() > MAX_BYTES {
        let message = format!("longer than {MAX_BYTES} bytes");
        return Err(YamlError { message, line: 1, column: 1 });
    }
    let mut builder = Builder::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| error_at(error.info(), *error.marker()))?;
        builder.take(event).map_err(|message| error_at(&message, span.start))?;
        if let Some(node) = builder.done.take() {
            return Ok(node);
        }
    }
    Ok(Node::Null)
}

fn error_at(message: &str, at: Marker) -> YamlError {
    YamlError { message: message.into(), line: at.line(), column: at.col() + 1 }
}

/// A collection that has not ended.
struct Open {
    anchor: usize,
    collection: Collection,
}

enum Collection {
    List(Vec<Node>),
    Map { members: Vec<(String, Node)>, key: Option<String> },
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    done: Option<Node>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                self.count(1)?;
                let is_null = style == ScalarStyle::Plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                self.put(anchor, if is_null { Node::Null } else { Node::Scalar(text.into_owned()) })
            }
            Event::Alias(anchor) => {
                // An alias inside the collection that it refers to has no node yet.
                let node = self.anchors.get(&anchor).ok_or("alias to a node that has not ended")?;
                let (count, depth) = (node.count(), node.depth());
                if self.open.len() + depth > MAX_DEPTH {
                    return Err(too_deep());
                }
                // Counted before it is copied.
                self.count(count)?;
                let copy = self.anchors.get(&anchor).cloned().unwrap_or(Node::Null);
                self.put(0, copy)
            }
            Event::SequenceStart(anchor, _) => self.begin(anchor, Collection::List(Vec::new())),
            Event::MappingStart(anchor, _) => self.begin(anchor, Collection::Map { members: Vec::new(), key: None }),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { anchor, collection }) = self.open.pop() else { return Ok(()) };
                let node = match collection {
                    Collection::List(nodes) => Node::List(nodes),
                    Collection::Map { members, .. } => Node::Map(members),
                };
                self.put(anchor, node)
            }
            Event::DocumentEnd => {
                self.done.get_or_insert(Node::Null);
                Ok(())
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) => Ok(()),
        }
    }

    fn begin(&mut self, anchor: usize, collection: Collection) -> Result<(), String> {
        self.count(1)?;
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.open.push(Open { anchor, collection });
        Ok(())
    }

    /// Adds a whole node to the collection that is open, or ends the document with it.
    fn put(&mut self, anchor: usize, node: Node) -> Result<(), String> {
        if anchor > 0 {
            self.count(node.count())?;
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.collection) {
            None => self.done = Some(node),
            Some(Collection::List(nodes)) => nodes.push(node),
            Some(Collection::Map { members, key }) => match key.take() {
                Some(key) => members.push((key, node)),
                None => {
                    let name = match node {
                        Node::Scalar(name) => name,
                        Node::Null => String::new(),
                        Node::List(_) | Node::Map(_) => return Err("a key must be a text".into()),
                    };
                    if members.iter().any(|(known, _)| *known == name) {
                        return Err(format!("duplicate field `{name}`"));
                    }
                    *key = Some(name);
                }
            },
        }
        Ok(())
    }

    fn count(&mut self, nodes: usize) -> Result<(), String> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES { Err(format!("more than {MAX_NODES} values")) } else { Ok(()) }
    }
}

fn too_deep() -> String {
    format!("nested deeper than {MAX_DEPTH} levels")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> Node {
        Node::Scalar(text.into())
    }

    fn map(members: &[(&str, Node)]) -> Node {
        Node::Map(members.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
    }

    fn error(yaml: &str) -> String {
        parse(yaml).unwrap_err().to_string()
    }

    #[test]
    fn scalars_keep_the_text_that_was_written() {
        let yaml = "a: 3\nb: true\nc: 'x: y'\nd: >-\n  one\n  two\ne:\nf: ~\ng: \"null\"\nh: two\n  words\n";
        let expected = map(&[
            ("a", text("3")),
            ("b", text("true")),
            ("c", text("x: y")),
            ("d", text("one two")),
            ("e", Node::Null),
            ("f", Node::Null),
            ("g", text("null")),
            ("h", text("two words")),
        ]);
        assert_eq!(parse(yaml), Ok(expected));
        assert_eq!(parse(""), Ok(Node::Null));
        assert_eq!(
            parse("- a\n- [b, {c: d}]\n"),
            Ok(Node::List(vec![text("a"), Node::List(vec![text("b"), map(&[("c", text("d"))])]),]))
        );
    }

    #[test]
    fn only_the_first_document_counts() {
        assert_eq!(parse("a: b\n---\n[\n"), Ok(map(&[("a", text("b"))])));
    }

    #[test]
    fn an_alias_is_a_copy_of_its_anchor() {
        let expected = map(&[("x", map(&[("k", text("v"))])), ("y", map(&[("k", text("v"))]))]);
        assert_eq!(parse("x: &a {k: v}\ny: *a\n"), Ok(expected));
    }

    #[test]
    fn aliases_that_multiply_are_refused_before_they_are_copied() {
        let mut yaml = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..30 {
            let of = vec![format!("*a{}", level - 1); 10].join(", ");
            yaml += &format!("a{level}: &a{level} [{of}]\n");
        }
        assert!(error(&yaml).starts_with("more than 10000 values at line "), "{}", error(&yaml));
        assert_eq!(error("a: &a [*a]"), "alias to a node that has not ended at line 1 column 8");
    }

    #[test]
    fn deep_long_and_contradictory_documents_are_refused() {
        assert!(error(&"[".repeat(100)).starts_with("nested deeper than 32 levels"));
        assert!(error(&"x".repeat(MAX_BYTES + 1)).starts_with("longer than 65536 bytes"));
        assert_eq!(error("a: 1\na: 2\n"), "duplicate field `a` at line 2 column 1");
        assert_eq!(error("? [a]\n: b\n"), "a key must be a text at line 1 column 5");
        assert!(error("a: b: c\n").ends_with("at line 1 column 5"), "{}", error("a: b: c\n"));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(yaml in "([\\[\\]{}:,&*!?|>'\"#\\- \n\tab~]|\\PC){0,200}") {
            if let Ok(node) = parse(&yaml) {
                prop_assert!(node.count() <= MAX_NODES && node.depth() <= MAX_DEPTH + 1);
            }
        }
    }
}
