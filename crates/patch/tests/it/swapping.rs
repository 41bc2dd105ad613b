//! Files replaced by links between the check and the application of a plan, as a sandboxed command could do: the plan
//! is applied outside of any sandbox.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use loomd_patch::{Disk, File, Files, FilesMut};

use crate::patch;

/// The disk, with a callback right before the first change.
struct SwapBeforeWrite<'a>(RefCell<Option<Box<dyn FnOnce() + 'a>>>);

impl SwapBeforeWrite<'_> {
    fn now(&self) {
        if let Some(swap) = self.0.take() {
            swap();
        }
    }
}

impl Files for SwapBeforeWrite<'_> {
    fn read(&self, path: &Path) -> io::Result<File> {
        Disk.read(path)
    }

    fn exists(&self, path: &Path) -> bool {
        Disk.exists(path)
    }

    fn is_dir(&self, path: &Path) -> bool {
        Disk.is_dir(path)
    }

    fn resolve(&self, path: &Path, last: bool) -> io::Result<PathBuf> {
        Disk.resolve(path, last)
    }
}

impl FilesMut for SwapBeforeWrite<'_> {
    fn write(&self, path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
        self.now();
        Disk.write(path, bytes, mode)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.now();
        Disk.remove(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.now();
        Disk.create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        Disk.remove_dir(path)
    }
}

/// Plans the hunks in a workspace with `folder/file`, swaps, applies, and checks that files outside are unchanged.
fn check(hunks: &str, swap: impl Fn(&Path, &Path)) {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let [workspace, outside] = ["workspace", "outside"].map(|name| root.join(name));
    for folder in [&workspace.join("folder"), &outside] {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("file"), "old\n").unwrap();
    }
    let plan = loomd_patch::prepare(&patch(hunks), &workspace, &Disk).unwrap();
    let files = SwapBeforeWrite(RefCell::new(Some(Box::new(|| swap(&workspace, &outside)))));
    let applied = plan.apply(&files);
    assert!(files.0.borrow().is_none(), "nothing was swapped: {hunks}");
    let left: Vec<_> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["file"], "{hunks}: {applied:?}");
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"old\n", "{hunks}: {applied:?}");
}

#[test]
fn a_link_swapped_in_after_the_check_is_not_followed() {
    let folder_for_link = |workspace: &Path, outside: &Path| {
        fs::rename(workspace.join("folder"), workspace.join("moved")).unwrap();
        symlink(outside, workspace.join("folder")).unwrap();
    };
    let file_for_link = |workspace: &Path, outside: &Path| {
        fs::remove_file(workspace.join("folder/file")).unwrap();
        symlink(outside.join("file"), workspace.join("folder/file")).unwrap();
    };
    for hunks in [
        "*** Update File: folder/file\n-old\n+new",
        "*** Add File: folder/new\n+new",
        "*** Add File: folder/deep/new\n+new",
        "*** Delete File: folder/file",
        "*** Update File: folder/file\n*** Move to: folder/other\n-old\n+new",
    ] {
        check(hunks, folder_for_link);
    }
    for hunks in ["*** Update File: folder/file\n-old\n+new", "*** Delete File: folder/file"] {
        check(hunks, file_for_link);
    }
    let link_for_missing = |workspace: &Path, outside: &Path| symlink(outside, workspace.join("later")).unwrap();
    check("*** Add File: later/new\n+new", link_for_missing);
}

#[test]
fn a_path_that_resolves_elsewhere_than_planned_is_not_changed() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    for name in ["one", "two"] {
        fs::write(root.join(name), "old\n").unwrap();
    }
    symlink("one", root.join("link")).unwrap();
    let plan = loomd_patch::prepare(&patch("*** Update File: link\n-old\n+new"), &root, &Disk).unwrap();
    fs::remove_file(root.join("link")).unwrap();
    symlink("two", root.join("link")).unwrap();
    let error = plan.apply(&Disk).unwrap_err();
    assert_eq!(error.to_string(), "Failed to apply the patch to link: it has changed since the patch was checked");
    assert_eq!(["one", "two"].map(|name| fs::read_to_string(root.join(name)).unwrap()), ["old\n", "old\n"]);
}
