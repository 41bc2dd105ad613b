//! Links between documents lead to files and headings that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::root;

/// The documents for readers; `docs/spec` and `conformance` are maintained elsewhere.
fn documents() -> Vec<PathBuf> {
    let folder = |path: &str| {
        let entries = fs::read_dir(root().join(path)).unwrap();
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "md"))
    };
    folder(".").chain(folder("docs")).chain(folder("packaging")).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { document.clone() } else { document.parent().unwrap().join(path) };
            let found = target.exists() && (heading.is_empty() || headings(&target).contains(heading));
            if !found {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn the_index_has_every_document() {
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    let listed = links(&index);
    for document in fs::read_dir(root().join("docs")).unwrap() {
        let name = document.unwrap().file_name().into_string().unwrap();
        let expected = name.ends_with(".md") && name != "README.md";
        assert!(!expected || listed.contains(&name), "docs/README.md has no link to {name}");
    }
}

/// The targets of links outside of code.
fn links(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2).collect::<String>();
    let prose = prose.split('`').step_by(2).collect::<String>();
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).collect()
}

/// The anchors of a document's headings.
fn headings(document: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(document).unwrap_or_default();
    let titles = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |title: &str| {
        let kept =
            title.to_lowercase().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>();
        kept.replace(' ', "-")
    };
    titles.map(anchor).collect()
}
