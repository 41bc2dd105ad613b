//! Properties of any patch and any file.

use std::path::Path;

use loomd_patch::{Chunk, Hunk, Line, Patch, intercept, parse, plan, prepare};
use proptest::prelude::*;

use crate::CWD;
use crate::memory::MemoryFiles;

/// One line of text, with characters that have a meaning in patches.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ab@*+ -]{0,6}", Just("*** End Patch".to_owned()), Just("@@".to_owned()), "[^\r\n]{0,8}"]
}

fn path() -> impl Strategy<Value = String> {
    "[a-z]{1,3}( [a-z])?(/[a-z]{1,2})?"
}

fn line() -> impl Strategy<Value = Line> {
    prop_oneof![text().prop_map(Line::Context), text().prop_map(Line::Added), text().prop_map(Line::Removed)]
}

fn chunk() -> impl Strategy<Value = Chunk> {
    let context = prop::option::of(text().prop_filter("blank", |text| !text.trim().is_empty()));
    (context, prop::collection::vec(line(), 1..5), any::<bool>()).prop_map(|(context, lines, end_of_file)| Chunk {
        context,
        lines,
        end_of_file,
    })
}

fn hunk() -> impl Strategy<Value = Hunk> {
    let content =
        prop::collection::vec(text(), 0..4).prop_map(|lines| lines.iter().map(|line| format!("{line}\n")).collect());
    prop_oneof![
        (path(), content).prop_map(|(path, content)| Hunk::Add { path, content }),
        path().prop_map(|path| Hunk::Delete { path }),
        (path(), prop::option::of(path()), prop::collection::vec(chunk(), 1..4))
            .prop_map(|(path, move_to, chunks)| Hunk::Update { path, move_to, chunks }),
    ]
}

fn patch() -> impl Strategy<Value = Patch> {
    prop::collection::vec(hunk(), 0..5).prop_map(|hunks| Patch { hunks })
}

/// Few different lines, so that positions are ambiguous.
fn file() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[abc]{0,1}", 0..20)
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// One chunk from the first difference to the last, with everything before it as context.
fn patch_between(before: &[String], after: &[String]) -> Patch {
    let same = before.iter().zip(after).take_while(|(one, two)| one == two).count();
    let rest = before[same..].iter().rev().zip(after[same..].iter().rev()).take_while(|(one, two)| one == two).count();
    let lines = (before[..same].iter().cloned().map(Line::Context))
        .chain(before[same..before.len() - rest].iter().cloned().map(Line::Removed))
        .chain(after[same..after.len() - rest].iter().cloned().map(Line::Added))
        .chain(before[before.len() - rest..].iter().cloned().map(Line::Context))
        .collect();
    let chunk = Chunk { lines, ..Chunk::default() };
    Patch { hunks: vec![Hunk::Update { path: "f".into(), move_to: None, chunks: vec![chunk] }] }
}

proptest! {
    #[test]
    fn a_printed_patch_parses_to_the_same_patch(patch in patch()) {
        prop_assert_eq!(parse(&patch.to_string()), Ok(patch));
    }

    #[test]
    fn a_patch_between_two_versions_turns_one_into_the_other(before in file(), after in file()) {
        prop_assume!(!before.is_empty() || !after.is_empty());
        let files = MemoryFiles::new(&[("f", &joined(&before))]);
        let patch = patch_between(&before, &after);
        let patch = parse(&patch.to_string()).unwrap();
        plan(&patch, Path::new(CWD), &files).unwrap().apply(&files).unwrap();
        prop_assert_eq!(files.all(), [("f".to_owned(), joined(&after))]);
    }

    #[test]
    fn any_patch_applies_completely_or_not_at_all(patch in patch(), contents in prop::collection::vec(file(), 0..4)) {
        let files = MemoryFiles::new(&[]);
        for (number, content) in contents.iter().enumerate() {
            files.put(["a", "b", "d/b", "c"][number], joined(content).as_bytes(), 0o644);
        }
        let before = files.all();
        if let Ok(plan) = plan(&patch, Path::new(CWD), &files) {
            plan.changes();
            if plan.apply(&files).is_err() {
                prop_assert_eq!(files.all(), before);
            }
        } else {
            prop_assert_eq!(files.all(), before);
        }
    }

    #[test]
    fn no_text_panics(text in r"(\*\*\* (Begin Patch|End Patch|Add File: |Update File: |Move to: |End of File)?|@@ ?|[-+ ]|a|\n|<<'?EOF'?|apply_patch |cd |&& |\r|\PC){0,40}") {
        let files = MemoryFiles::new(&[("a", "a\n\na\n")]);
        let _ = prepare(&text, Path::new(CWD), &files);
        let _ = prepare(&format!("*** Begin Patch\n*** Update File: a\n{text}\n*** End Patch"), Path::new(CWD), &files);
        intercept(&["bash", "-c", &text]);
    }
}
