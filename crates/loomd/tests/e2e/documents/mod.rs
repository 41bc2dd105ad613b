//! The documents: their messages are real ones, their programs and commands run, their links lead somewhere.

mod how_to;
mod links;
mod npm;
mod programs;
mod readme;
mod shell;
mod tutorial;
mod written;

use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A fenced block whose info string is a language and a name.
struct Block {
    name: String,
    /// Where its content is in the document, without the fences.
    range: std::ops::Range<usize>,
}

/// The fenced blocks of a document that have a name.
fn named_blocks(document: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String, usize)> = None;
    let mut position = 0;
    for line in document.split_inclusive('\n') {
        let start = position;
        position += line.len();
        let fence: String = line.chars().take_while(|c| *c == '`').collect();
        match &open {
            None if fence.len() >= 3 => {
                let name = line.trim_start_matches('`').split_whitespace().nth(1).unwrap_or_default();
                open = Some((fence, name.to_owned(), position));
            }
            Some((opening, name, content)) if fence == *opening && line.trim() == fence => {
                if !name.is_empty() {
                    blocks.push(Block { name: name.clone(), range: *content..start });
                }
                open = None;
            }
            _ => {}
        }
    }
    assert!(open.is_none(), "a block that does not end");
    blocks
}

/// The content of the block of this name.
fn block(document: &str, name: &str) -> String {
    let blocks = named_blocks(document);
    let found = blocks.iter().find(|block| block.name == name).unwrap_or_else(|| panic!("no block {name}"));
    document[found.range.clone()].to_owned()
}
