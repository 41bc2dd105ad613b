//! Blocks of documents that are written by `cargo xtask docs`: messages of a real run, and example programs that are
//! files of the repository. A block's name, after its language, says which.

mod conversation;
mod messages;

use std::collections::BTreeMap;
use std::fs;

use super::{named_blocks, root};

/// Compares the blocks of a document with what they should be, by name; writes them when `LOOMD_RECORD_DOCS` is set.
fn check(document: &str, expected: &BTreeMap<String, String>) {
    let path = root().join(document);
    let mut text = fs::read_to_string(&path).unwrap();
    let written = named_blocks(&text);
    for name in expected.keys() {
        assert!(written.iter().any(|block| block.name == *name), "{document} has no block `{name}`");
    }
    if std::env::var_os("LOOMD_RECORD_DOCS").is_some() {
        for block in written.into_iter().rev() {
            if let Some(content) = expected.get(&block.name) {
                text.replace_range(block.range, content);
            }
        }
        fs::write(path, text).unwrap();
        return;
    }
    for block in written {
        if let Some(content) = expected.get(&block.name) {
            let found = &text[block.range];
            assert!(
                found == content,
                "`{}` of {document} is outdated: run `cargo xtask docs`\n--- written\n{found}\n--- now\n{content}",
                block.name
            );
        }
    }
}

#[tokio::test]
async fn the_messages_of_the_protocol_guide_are_those_of_a_real_run() {
    check("docs/protocol.md", &messages::capture().await);
}

#[tokio::test]
async fn the_messages_of_plan_mode_are_those_of_a_real_run() {
    check("docs/plan-mode.md", &messages::capture_plan().await);
}

#[test]
fn example_programs_in_documents_are_the_files_that_they_name() {
    for document in ["docs/protocol.md", "docs/tutorial.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let files = named_blocks(&text).into_iter().filter(|block| block.name.contains('.')).map(|block| {
            let content = fs::read_to_string(root().join("docs").join(&block.name));
            (block.name.clone(), content.unwrap_or_else(|error| panic!("{}: {error}", block.name)))
        });
        let files: BTreeMap<_, _> = files.collect();
        assert!(!files.is_empty(), "{document} has no program");
        check(document, &files);
    }
}
