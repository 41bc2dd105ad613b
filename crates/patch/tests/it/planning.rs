//! Plans: positions of chunks, displayed changes, touched paths.

use std::path::Path;

use loomd_patch::TouchedPath;
use loomd_protocol::{FileUpdateChange, PatchChangeKind};

use crate::memory::MemoryFiles;
use crate::{patch, plan, refusal};

/// Checks the content of `f` after a patch of it.
fn check(before: &str, chunks: &str, after: &str) {
    let files = MemoryFiles::new(&[("f", before)]);
    plan(&files, &format!("*** Update File: f\n{chunks}")).apply(&files).unwrap();
    assert_eq!(files.all(), [("f".to_owned(), after.to_owned())], "{chunks}");
}

fn check_lost(before: &str, chunks: &str, error: &str) {
    let files = MemoryFiles::new(&[("f", before)]);
    let text = patch(&format!("*** Update File: f\n{chunks}"));
    assert_eq!(refusal(&files, &text), format!("apply_patch verification failed: {error}"), "{chunks}");
}

#[test]
fn chunks_apply_at_their_lines() {
    check("a\nb\nc\n", "@@\n a\n-b\n+B", "a\nB\nc\n");
    check("a\nb\nc\n", "@@\n-a\n+A\n@@\n-c\n+C", "A\nb\nC\n");
    check("x\nm\nx\n", "@@ m\n-x\n+y", "x\nm\ny\n");
    check("x\ny\nx\ny\n", "@@\n-y\n+last\n*** End of File", "x\ny\nx\nlast\n");
    check("a\n", "@@\n-a", "");
}

#[test]
fn a_chunk_without_old_lines_is_appended() {
    check("a\nb\n", "@@\n+x", "a\nb\nx\n");
    check("a\nb\n", "@@ a\n+x", "a\nb\nx\n");
    check("", "@@\n+x", "x\n");
    check("a\nb\nc\n", "@@\n-a\n+1\n@@\n+end\n@@\n-c\n+3", "1\nb\n3\nend\n");
}

#[test]
fn differences_in_white_space_and_typography_are_tolerated_and_kept() {
    check("  x   \nrest\n", "@@\n-  x\n+y", "y\nrest\n");
    check("\t x\nrest\n", "@@\n-x\n+y", "y\nrest\n");
    check("\u{201c}a\u{201d} \u{2013} b\nc\n", "@@\n \"a\" - b\n-c\n+C", "\u{201c}a\u{201d} \u{2013} b\nC\n");
    check("a\na \na\n", "@@\n-a \n+X", "a\nX\na\n");
    check("  deep\nx\n", "@@ deep\n-x\n+y", "  deep\ny\n");
}

#[test]
fn line_endings_and_blank_lines_of_the_file_stay() {
    check("a\r\nb\r\n", "@@\n-a\n+A\n+new\n b", "A\r\nnew\r\nb\r\n");
    check("a\n\n\n", "@@\n-a\n+A", "A\n\n\n");
    check("a\n\n\n", "@@\n+x", "a\n\n\nx\n");
    check("a\nb", "@@\n-a\n+A", "A\nb\n");
}

#[test]
fn an_extra_blank_line_at_the_end_of_a_chunk_is_tolerated() {
    check("a\nb\n", "@@\n-a\n+A\n\n@@\n-b\n+B\n", "A\nB\n");
    check("a\nb\n", "@@\n-a\n-\n+A\n+", "A\nb\n");
    check("a\nb\n", "@@\n a\n\n+x", "a\n\nx\nb\n");
}

#[test]
fn a_chunk_without_position_is_an_error() {
    check_lost("a\nb\n", "@@ zz\n+x", "Failed to find context 'zz' in /w/f");
    check_lost("a\nb\nc\n", "-a\n+A\n-c\n+C", "Failed to find expected lines in /w/f:\na\nc");
    check_lost("a\nb\n", "@@\n-b\n+B\n@@\n-a\n+A", "Failed to find expected lines in /w/f:\na");
    check_lost("x\ny\n", "@@\n-x\n+1\n*** End of File", "Failed to find expected lines in /w/f:\nx");
    check_lost("a\n", "@@\n-c\n\n\n@@\n-d", "Failed to find expected lines in /w/f:\nc\n\n");
    check_lost("a\n", "@@\n-a\n-b\n-c\n", "Failed to find expected lines in /w/f:\na\nb\nc\n");
}

#[test]
fn unreadable_files_are_named() {
    let files = MemoryFiles::new(&[("d/x", "")]);
    files.put("binary", b"\xff\n", 0o644);
    for (hunk, error) in [
        ("*** Update File: gone\n-x", "Failed to read file to update /w/gone: No such file or directory (os error 2)"),
        ("*** Delete File: gone", "Failed to read /w/gone: No such file or directory (os error 2)"),
        ("*** Update File: d\n-x", "Failed to read file to update /w/d: is a directory"),
        ("*** Update File: binary\n-x", "Failed to read file to update /w/binary: stream did not contain valid UTF-8"),
        ("*** Delete File: binary", "Failed to read /w/binary: stream did not contain valid UTF-8"),
        (
            "*** Add File: new\n*** Delete File: new\n*** Update File: new\n+x",
            "Failed to read file to update /w/new: No such file or directory (os error 2)",
        ),
    ] {
        assert_eq!(refusal(&files, &patch(hunk)), format!("apply_patch verification failed: {error}"));
    }
}

fn change(path: &str, kind: PatchChangeKind, diff: &str) -> FileUpdateChange {
    FileUpdateChange { path: format!("/w/{path}"), kind, diff: diff.into() }
}

fn update(move_path: Option<&str>) -> PatchChangeKind {
    PatchChangeKind::Update { move_path: move_path.map(|path| format!("/w/{path}")) }
}

fn check_changes(hunks: &str, expected: &[FileUpdateChange], summary: &str) {
    let files = MemoryFiles::new(&[("b", "one\ntwo\nthree\nfour\n"), ("e", "bye\n"), ("f", "f\n")]);
    let plan = plan(&files, hunks);
    assert_eq!(plan.changes(), expected, "{hunks}");
    assert_eq!(plan.summary(), format!("Success. Updated the following files:\n{summary}"), "{hunks}");
}

#[test]
fn changes_are_sorted_and_complete() {
    check_changes(
        "*** Update File: b\n*** Move to: c/d\n@@\n one\n-two\n+TWO\n three\n*** Delete File: e\n*** Add File: ./x/../a\n+x\n+y",
        &[
            change("a", PatchChangeKind::Add, "x\ny\n"),
            change("b", update(Some("c/d")), "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n\n\nMoved to: /w/c/d"),
            change("e", PatchChangeKind::Delete, "bye\n"),
        ],
        "A ./x/../a\nM c/d\nD e\n",
    );
    check_changes("*** Add File: f\n+new", &[change("f", PatchChangeKind::Add, "new\n")], "A f\n");
    check_changes(
        "*** Update File: f\n*** Move to: g\n@@\n f",
        &[change("f", update(Some("g")), "\n\nMoved to: /w/g")],
        "M g\n",
    );
}

#[test]
fn hunks_see_the_results_of_earlier_hunks() {
    check_changes(
        "*** Update File: f\n-f\n+g\n*** Update File: f\n-g\n+h",
        &[change("f", update(None), "@@ -1 +1 @@\n-f\n+h\n")],
        "M f\nM f\n",
    );
    check_changes(
        "*** Add File: n\n+1\n*** Update File: n\n*** Move to: m\n-1\n+2",
        &[change("m", PatchChangeKind::Add, "2\n")],
        "A n\nM m\n",
    );
    check_changes(
        "*** Delete File: f\n*** Add File: f\n+new",
        &[change("f", PatchChangeKind::Add, "new\n")],
        "A f\nD f\n",
    );
    check_changes("*** Add File: n\n+1\n*** Delete File: n", &[], "A n\nD n\n");
    check_changes(
        "*** Update File: f\n-f\n+g\n*** Delete File: f",
        &[change("f", PatchChangeKind::Delete, "f\n")],
        "M f\nD f\n",
    );
    check_changes(
        "*** Update File: f\n*** Move to: g\n-f\n+g\n*** Update File: g\n*** Move to: h\n-g\n+h",
        &[change("f", update(Some("h")), "@@ -1 +1 @@\n-f\n+h\n\n\nMoved to: /w/h")],
        "M g\nM h\n",
    );
    check_changes(
        "*** Update File: f\n*** Move to: g\n-f\n+g\n*** Update File: g\n*** Move to: f\n-g\n+h",
        &[change("f", update(None), "@@ -1 +1 @@\n-f\n+h\n")],
        "M g\nM f\n",
    );
    check_changes(
        "*** Update File: f\n*** Move to: e\n-f\n+g\n*** Delete File: e",
        &[change("e", PatchChangeKind::Delete, "bye\n"), change("f", PatchChangeKind::Delete, "f\n")],
        "M e\nD e\n",
    );
}

#[test]
fn touched_paths_include_link_targets() {
    let mut files = MemoryFiles::new(&[("f", "a\n"), ("old", "o\n")]);
    files.links.insert("/w/f".into(), "/elsewhere/f".into());
    files.put("/elsewhere/f", b"a\n", 0o644);
    let plan = plan(&files, "*** Update File: f\n-a\n+b\n*** Update File: old\n*** Move to: new\n-o\n+n");
    let touched: Vec<_> = plan.touched().collect();
    let expected = [("/w/f", "/elsewhere/f"), ("/w/new", "/w/new"), ("/w/old", "/w/old")];
    assert_eq!(
        touched,
        expected.map(|(path, target)| TouchedPath { path: Path::new(path), target: Path::new(target) })
    );
}

#[test]
fn one_file_under_two_names_is_refused() {
    let mut files = MemoryFiles::new(&[("f", "a\n"), ("link", "a\n")]);
    files.links.insert("/w/link".into(), "/w/f".into());
    assert_eq!(
        refusal(&files, &patch("*** Update File: f\n-a\n+b\n*** Update File: link\n-a\n+c")),
        "apply_patch verification failed: /w/f and /w/link are the same file"
    );
}
