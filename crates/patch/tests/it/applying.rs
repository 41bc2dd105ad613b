//! Applying plans, also with failing steps.

use loomd_patch::{ApplyError, Disk, Step, TurnDiff};

use crate::memory::MemoryFiles;
use crate::plan;

const HUNKS: &str = "*** Update File: a\n-1\n+one\n*** Add File: deep/er/new\n+n\n*** Delete File: d\n*** Update File: m\n\
                     *** Move to: moved\n-3\n+three";

fn files() -> MemoryFiles {
    let files = MemoryFiles::new(&[("a", "1\n"), ("d", "2\n")]);
    files.put("m", b"3\n", 0o750);
    files
}

fn owned(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
}

#[test]
fn a_plan_changes_all_its_files() {
    let files = files();
    plan(&files, HUNKS).apply(&files).unwrap();
    assert_eq!(files.all(), owned(&[("a", "one\n"), ("deep/er/new", "n\n"), ("moved", "three\n")]));
    assert_eq!(files.mode("moved"), 0o750);
}

/// Applies a patch that cannot write to one path, and checks that nothing has changed.
fn check_failure(broken: &str, step: Step, message: &str) {
    let mut files = files();
    files.broken.insert(broken.into());
    let (before, folders) = (files.all(), files.folders());
    let error = plan(&files, HUNKS).apply(&files).unwrap_err();
    assert_eq!((error.step, error.to_string()), (step, message.into()));
    assert_eq!((files.all(), files.folders()), (before, folders), "{broken}");
}

#[test]
fn a_failing_step_is_undone() {
    check_failure("/w/a", Step::Write, "Failed to write file a: permission denied");
    check_failure(
        "/w/deep/er",
        Step::CreateParents,
        "Failed to create parent directories for deep/er/new: permission denied",
    );
    check_failure("/w/moved", Step::Write, "Failed to write file moved: permission denied");
    check_failure("/w/d", Step::Delete, "Failed to delete file d: permission denied");
    check_failure("/w/m", Step::RemoveOriginal, "Failed to remove original m: permission denied");
}

#[test]
fn paths_that_cannot_be_restored_are_named() {
    let error = ApplyError {
        step: Step::Write,
        shown: "f".into(),
        source: std::io::ErrorKind::StorageFull.into(),
        left: vec!["/w/a".into(), "/w/b".into()],
    };
    assert_eq!(
        error.to_string(),
        "Failed to write file f: no storage space. These could not be put back as they were: /w/a, /w/b"
    );
}

#[test]
fn a_file_changed_after_planning_is_not_overwritten() {
    let files = files();
    let plan = plan(&files, HUNKS);
    files.put("a", b"mine\n", 0o644);
    let error = plan.apply(&files).unwrap_err();
    assert_eq!(error.step, Step::Compare);
    assert_eq!(error.to_string(), "Failed to apply the patch to a: it has changed since the patch was checked");
    assert_eq!(files.all(), owned(&[("a", "mine\n"), ("d", "2\n"), ("m", "3\n")]));
}

#[test]
fn a_file_can_be_replaced_by_a_folder() {
    let files = MemoryFiles::new(&[("d", "x\n")]);
    plan(&files, "*** Update File: d\n*** Move to: d/inside\n@@\n x").apply(&files).unwrap();
    assert_eq!(files.all(), owned(&[("d/inside", "x\n")]));
}

#[test]
fn a_file_moved_onto_itself_stays() {
    let files = MemoryFiles::new(&[("f", "a\n")]);
    plan(&files, "*** Update File: f\n*** Move to: ./f\n-a\n+b").apply(&files).unwrap();
    assert_eq!(files.all(), owned(&[("f", "b\n")]));
}

#[test]
fn a_folder_in_place_of_a_file_is_an_error() {
    let files = MemoryFiles::new(&[("d/x", "1\n")]);
    let fail = |hunks: &str| plan(&files, hunks).apply(&files).unwrap_err().to_string();
    assert_eq!(fail("*** Add File: d\n+2"), "Failed to write file d: is a directory");
    assert_eq!(fail("*** Add File: d/x/y\n+2"), "Failed to create parent directories for d/x/y: not a directory");
}

#[cfg(unix)]
#[test]
fn a_plan_applies_on_disk_and_through_links() {
    use std::fs;
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir(root.join("real")).unwrap();
    fs::write(root.join("real/a"), "1\n").unwrap();
    symlink("real", root.join("link")).unwrap();
    symlink("real/a", root.join("alias")).unwrap();
    let text = crate::patch("*** Update File: alias\n-1\n+one\n*** Add File: link/new/n\n+n");
    let plan = loomd_patch::prepare(&text, root, &Disk).unwrap();
    plan.apply(&Disk).unwrap();
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    assert_eq!((read("real/a"), read("real/new/n")), ("one\n".into(), "n\n".into()));
    assert!(root.join("alias").is_symlink());
    let mut diff = TurnDiff::new(root.into());
    diff.note(&plan);
    let heads: Vec<_> =
        diff.unified(&Disk).lines().filter(|line| line.starts_with("diff ")).map(str::to_owned).collect();
    assert_eq!(heads, ["diff --git a/alias b/alias", "diff --git a/link/new/n b/link/new/n"]);
}
