//! The net diff of several patches.

use std::path::Path;

use loomd_patch::{TurnDiff, diff_base};

use crate::memory::MemoryFiles;
use crate::{CWD, plan};

/// Applies the patches one after the other.
fn diff(files: &MemoryFiles, patches: &[&str]) -> String {
    let mut diff = TurnDiff::new(diff_base(Path::new(CWD), files));
    for hunks in patches {
        let plan = plan(files, hunks);
        plan.apply(files).unwrap();
        diff.note(&plan);
    }
    diff.unified(files)
}

fn files() -> MemoryFiles {
    MemoryFiles::new(&[("sub/f", "a\nb\nc\nd\n"), ("g", "g\n")])
}

#[test]
fn a_changed_file_has_gits_format() {
    assert_eq!(
        diff(&files(), &["*** Update File: sub/f\n-a\n+A", "*** Update File: sub/f\n-c\n+C"]),
        "diff --git a/sub/f b/sub/f\n\
         index d68dd4031d2ad5b7a3829ad7df6635e27a7daa22..2f1b1fb51331361f142519d0c94ecf7f669494c8\n\
         --- a/sub/f\n+++ b/sub/f\n@@ -1,4 +1,4 @@\n-a\n+A\n b\n-c\n+C\n d\n"
    );
}

#[test]
fn new_and_deleted_files_have_dev_null_on_one_side() {
    assert_eq!(
        diff(&files(), &["*** Add File: a\n+1\n*** Delete File: g\n*** Add File: empty"]),
        "diff --git a/a b/a\nnew file mode 100644\n\
         index 0000000000000000000000000000000000000000..d00491fd7e5bb6fa28c517a0bb32b8b506539d4d\n\
         --- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+1\n\
         diff --git a/empty b/empty\nnew file mode 100644\n\
         index 0000000000000000000000000000000000000000..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n\
         diff --git a/g b/g\ndeleted file mode 100644\n\
         index 01058d844a98d293a3b03a8615a34700e4ed2be3..0000000000000000000000000000000000000000\n\
         --- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n"
    );
}

#[test]
fn a_moved_file_is_one_entry() {
    assert_eq!(
        diff(&files(), &["*** Update File: g\n*** Move to: h\n@@\n g", "*** Update File: h\n*** Move to: i\n@@\n g"]),
        "diff --git a/g b/i\nsimilarity index 100%\nrename from g\nrename to i\n"
    );
    assert_eq!(
        diff(&files(), &["*** Update File: sub/f\n*** Move to: f\n-a\n+A"]),
        "diff --git a/sub/f b/f\nsimilarity index 75%\nrename from sub/f\nrename to f\n\
         index d68dd4031d2ad5b7a3829ad7df6635e27a7daa22..a5fe5caf05214cfe21812b19b132ee71049ccb4e\n\
         --- a/sub/f\n+++ b/f\n@@ -1,4 +1,4 @@\n-a\n+A\n b\n c\n d\n"
    );
}

#[test]
fn a_file_moved_over_another_is_two_entries() {
    let text = diff(&files(), &["*** Update File: g\n*** Move to: sub/f\n-g\n+G"]);
    let heads: Vec<_> = text.lines().filter(|line| line.starts_with("diff ") || line.contains(" mode ")).collect();
    assert_eq!(heads, ["diff --git a/g b/g", "deleted file mode 100644", "diff --git a/sub/f b/sub/f"]);
}

#[test]
fn no_net_change_is_an_empty_diff() {
    assert_eq!(diff(&files(), &["*** Update File: g\n-g\n+h", "*** Update File: g\n-h\n+g"]), "");
    assert_eq!(diff(&files(), &["*** Add File: n\n+1", "*** Delete File: n"]), "");
    assert_eq!(
        diff(&files(), &["*** Update File: g\n*** Move to: h\n@@\n g", "*** Update File: h\n*** Move to: g\n@@\n g"]),
        ""
    );
    assert_eq!(diff(&files(), &[]), "");
}

#[test]
fn binary_files_are_listed_without_lines() {
    let files = files();
    files.put("b", b"\0\xff", 0o755);
    let text = diff(&files, &["*** Add File: b\n+x"]);
    let last = text.lines().last();
    assert_eq!(last, Some("Binary files a/b and b/b differ"));
}

#[test]
fn paths_are_relative_to_the_repository_and_quoted_if_needed() {
    let files = files();
    files.put("/.git/HEAD", b"", 0o644);
    let first = |hunks: &str| diff(&files, &[hunks]).lines().next().unwrap().to_owned();
    assert_eq!(first("*** Update File: g\n-g\n+h"), "diff --git a/w/g b/w/g");
    let outside = MemoryFiles::new(&[]);
    let text = diff(&outside, &["*** Add File: /etc/x\n+1\n*** Add File: say \"hi\"\n+1"]);
    let heads: Vec<_> = text.lines().filter(|line| line.starts_with("diff ")).collect();
    assert_eq!(heads, ["diff --git a/etc/x b/etc/x", "diff --git \"a/say \\\"hi\\\"\" \"b/say \\\"hi\\\"\""]);
}
