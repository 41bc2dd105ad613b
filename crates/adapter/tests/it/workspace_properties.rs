//! Properties of workspaces, on generated folders and with a process that interferes.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use loomd_adapter::{HostMount, Workspace, WorkspaceError};
use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::workspace::files;

#[derive(Clone, Debug)]
enum Entry {
    File(Vec<u8>),
    /// A link to this path, seen from the folder that it is in.
    Link(String),
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b.rs", "c.txt", "dir", "x y", "é"]).prop_map(str::to_owned)
}

fn entry() -> impl Strategy<Value = Entry> {
    let target = prop::sample::select(vec!["..", "../..", "a", "dir", "/", "/etc/passwd", "../outside/secret", "."]);
    prop_oneof![
        3 => vec(any::<u8>(), 0..40).prop_map(Entry::File),
        1 => target.prop_map(|target| Entry::Link(target.to_owned())),
    ]
}

/// Files and links at paths of one to three names.
fn tree() -> impl Strategy<Value = Vec<(Vec<String>, Entry)>> {
    vec((vec(name(), 1..4), entry()), 0..12)
}

/// Creates what can be created of the tree, and returns the real files with their content.
fn create(root: &Path, tree: &[(Vec<String>, Entry)]) -> Vec<(PathBuf, Vec<u8>)> {
    let mut created = Vec::new();
    for (names, entry) in tree {
        let relative: PathBuf = names.iter().collect();
        let path = root.join(&relative);
        // Neither through a link nor over something that exists.
        let mut parents = relative.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
        if parents.any(|parent| root.join(parent).is_symlink() || root.join(parent).is_file())
            || path.symlink_metadata().is_ok()
        {
            continue;
        }
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match entry {
            Entry::File(bytes) => {
                std::fs::write(&path, bytes).unwrap();
                created.push((relative, bytes.clone()));
            }
            Entry::Link(target) => symlink(target, &path).unwrap(),
        }
    }
    created
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn exactly_the_regular_files_of_the_mount_are_copied(tree in tree(), budget in 0u64..300) {
        let host = TempDir::new().unwrap();
        let root = host.path().join("mounted");
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(host.path().join("outside")).unwrap();
        std::fs::write(host.path().join("outside/secret"), "secret").unwrap();
        let created = create(&root, &tree);
        let size: usize = created.iter().map(|(_, bytes)| bytes.len()).sum();
        let built = Workspace::builder().mount(HostMount::new(&root).at("m").max_bytes(budget)).build_blocking();
        if size as u64 > budget {
            let exceeded = matches!(built, Err(WorkspaceError::BudgetExceeded { limit, .. }) if limit == budget);
            prop_assert!(exceeded, "{:?}", built);
            return Ok(());
        }
        let workspace = built.unwrap();
        let copied: BTreeSet<_> = files(workspace.path()).into_iter().collect();
        let expected: BTreeSet<_> = created.iter().map(|(path, _)| Path::new("m").join(path)).collect();
        prop_assert_eq!(copied, expected);
        for (path, bytes) in &created {
            let copy = workspace.path().join("m").join(path);
            prop_assert!(!copy.is_symlink());
            prop_assert_eq!(&std::fs::read(copy).unwrap(), bytes);
        }
        prop_assert_eq!(workspace.previews()[0].bytes, size as u64);
    }

    #[test]
    fn globs_select_what_they_match(tree in tree(), extension in prop::sample::select(vec!["rs", "txt"])) {
        let host = TempDir::new().unwrap();
        let created = create(host.path(), &tree);
        let mount = HostMount::new(host.path()).at("m").include(format!("**/*.{extension}")).exclude("dir");
        let workspace = Workspace::builder().mount(mount).build_blocking().unwrap();
        let wanted = |path: &Path| path.extension().is_some_and(|it| it == extension) && !path.starts_with("dir");
        let expected: BTreeSet<_> =
            created.iter().filter(|(path, _)| wanted(path)).map(|(path, _)| Path::new("m").join(path)).collect();
        prop_assert_eq!(files(workspace.path()).into_iter().collect::<BTreeSet<_>>(), expected);
    }

    #[test]
    fn no_mount_path_leads_out_of_the_workspace(parts in vec(prop::sample::select(vec!["..", ".", "a", "b", ""]), 0..6), rooted: bool) {
        let host = TempDir::new().unwrap();
        std::fs::write(host.path().join("f"), "f").unwrap();
        let path = format!("{}{}", if rooted { "/" } else { "" }, parts.join("/"));
        match Workspace::builder().mount(HostMount::new(host.path()).at(&path)).build_blocking() {
            Ok(workspace) => {
                let copied = files(workspace.path());
                prop_assert_eq!(copied.len(), 1, "{}", path);
                prop_assert!(copied[0].components().all(|it| matches!(it, std::path::Component::Normal(_))));
            }
            Err(error) => prop_assert!(matches!(error, WorkspaceError::Security { .. }), "{}: {}", path, error),
        }
    }
}

#[test]
fn a_folder_that_is_swapped_for_a_link_meanwhile_never_lets_a_file_in() {
    let host = TempDir::new().unwrap();
    let (root, outside) = (host.path().join("mounted"), host.path().join("outside"));
    for folder in [&root.join("swapped"), &outside] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(root.join("swapped/file"), "harmless").unwrap();
    std::fs::write(outside.join("file"), "secret").unwrap();
    symlink(&outside, host.path().join("link")).unwrap();
    let (swapped, parked, link) = (root.join("swapped"), host.path().join("parked"), host.path().join("link"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::fs::rename(&swapped, &parked).unwrap();
                std::fs::rename(&link, &swapped).unwrap();
                std::fs::rename(&swapped, &link).unwrap();
                std::fs::rename(&parked, &swapped).unwrap();
            }
        });
        // Collected, as a failed assertion here would leave the other thread running.
        let mut copied = Vec::new();
        for index in 0..300 {
            // Both inside of the mount and as the mount itself.
            let mount = if index % 2 == 0 { &root } else { &swapped };
            let built = Workspace::builder().mount(HostMount::new(mount).at("m")).allowed_root(&root).build_blocking();
            let Ok(workspace) = built else { continue };
            for file in files(workspace.path()) {
                copied.push(std::fs::read(workspace.path().join(&file)));
            }
        }
        done.store(true, Ordering::Relaxed);
        for text in copied {
            assert_eq!(text.unwrap(), b"harmless");
        }
    });
}
