//! Workspaces: what is copied, and what is refused.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use loomd_adapter::{HostMount, Prompt, Workspace, WorkspaceError};
use tempfile::TempDir;

/// A host folder with these files.
fn host(files: &[(&str, &str)]) -> TempDir {
    let host = TempDir::with_prefix("loomd-host-").unwrap();
    for (path, text) in files {
        let path = host.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    host
}

/// All files below a folder, sorted.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    fn walk(folder: &Path, root: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                walk(&path, root, found);
            } else {
                found.push(path.strip_prefix(root).unwrap().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, folder, &mut found);
    found.sort();
    found
}

fn build(mount: HostMount) -> Result<Workspace, WorkspaceError> {
    Workspace::builder().mount(mount).build_blocking()
}

#[test]
fn selected_files_are_copied_with_their_executable_bit() {
    let host =
        host(&[("src/a.rs", "a"), ("src/deep/b.rs", "bb"), ("src/c.txt", "c"), ("target/x.rs", "x"), ("run", "#!")]);
    std::fs::set_permissions(host.path().join("run"), PermissionsExt::from_mode(0o755)).unwrap();
    let mount = HostMount::new(host.path()).at("repo").include("**/*.rs").include("run").exclude("target");
    let workspace = build(mount).unwrap();
    let copied = files(workspace.path());
    assert_eq!(copied, ["repo/run", "repo/src/a.rs", "repo/src/deep/b.rs"].map(PathBuf::from));
    assert_eq!(std::fs::read_to_string(workspace.path().join("repo/src/deep/b.rs")).unwrap(), "bb");
    let mode = |path: &str| workspace.path().join(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("repo/run"), mode("repo/src/a.rs"), mode("repo")), (0o700, 0o600, 0o700));
    let [preview] = workspace.previews() else { panic!() };
    assert_eq!((preview.files, preview.bytes, preview.skipped), (3, 5, 0));
    assert_eq!(preview.entries, ["run", "src/a.rs", "src/deep/b.rs"].map(PathBuf::from));
}

#[tokio::test]
async fn the_folder_is_removed_with_the_workspace() {
    let host = host(&[("a", "a")]);
    let workspace = build(HostMount::new(host.path())).unwrap();
    let path = workspace.path().to_owned();
    assert!(path.exists());
    drop(workspace);
    assert!(!path.exists());
    let workspace = Workspace::builder().mount(HostMount::new(host.path())).build().await.unwrap();
    let path = workspace.path().to_owned();
    workspace.close().await.unwrap();
    assert!(!path.exists() && host.path().join("a").exists());
}

#[test]
fn a_single_file_is_copied_to_its_mount_path() {
    let host = host(&[("notes.md", "hello")]);
    let workspace = build(HostMount::new(host.path().join("notes.md")).at("docs/n.md")).unwrap();
    assert_eq!(files(workspace.path()), [PathBuf::from("docs/n.md")]);
    let workspace = build(HostMount::new(host.path().join("notes.md"))).unwrap();
    assert_eq!(files(workspace.path()), [PathBuf::from("notes.md")]);
}

#[test]
fn links_and_special_files_are_left_out() {
    let secret = host(&[("key", "secret")]);
    let host = host(&[("a", "a"), ("b/c", "c")]);
    symlink(secret.path().join("key"), host.path().join("to-file")).unwrap();
    symlink(secret.path(), host.path().join("to-folder")).unwrap();
    symlink("..", host.path().join("b/up")).unwrap();
    symlink("a", host.path().join("inside")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(host.path().join("socket")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        host.path().join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let workspace = build(HostMount::new(host.path()).at("m")).unwrap();
    assert_eq!(files(workspace.path()), ["m/a", "m/b/c"].map(PathBuf::from));
    assert_eq!(workspace.previews()[0].skipped, 6);
}

#[test]
fn mounts_outside_of_the_allowed_roots_are_refused() {
    let allowed = host(&[("in/a", "a")]);
    let secret = host(&[("key", "secret")]);
    symlink(secret.path(), allowed.path().join("out")).unwrap();
    let build = |path: PathBuf| {
        Workspace::builder().mount(HostMount::new(path).at("m")).allowed_root(allowed.path()).build_blocking()
    };
    build(allowed.path().join("in")).unwrap();
    for path in [secret.path().to_owned(), allowed.path().join("out"), allowed.path().join("in/../..")] {
        let error = build(path.clone()).unwrap_err();
        assert!(matches!(error, WorkspaceError::Security { .. }), "{}: {error}", path.display());
        assert!(error.to_string().contains("in none of the allowed roots"), "{error}");
    }
    // A folder whose name begins like that of the root is another one.
    let beside = PathBuf::from(format!("{}-beside", allowed.path().display()));
    std::fs::create_dir(&beside).unwrap();
    let refused = build(beside.clone());
    std::fs::remove_dir(&beside).unwrap();
    assert!(matches!(refused, Err(WorkspaceError::Security { .. })), "{refused:?}");
}

#[test]
fn mount_paths_stay_in_the_workspace() {
    let host = host(&[("a", "a")]);
    for (path, words) in [
        ("../out", "must not contain `..`"),
        ("in/../../out", "must not contain `..`"),
        ("/etc", "must be relative"),
        ("", "must not be empty"),
        (".", "must not be empty"),
    ] {
        let error = build(HostMount::new(host.path()).at(path)).unwrap_err();
        assert!(matches!(error, WorkspaceError::Security { .. }) && error.to_string().contains(words), "{error}");
    }
    let relative = build(HostMount::new("relative")).unwrap_err();
    assert_eq!(relative.to_string(), "relative: the path must be absolute");
    let root = Workspace::builder().allowed_root("relative").build_blocking().unwrap_err();
    assert!(matches!(root, WorkspaceError::Security { .. }), "{root}");
    let twice = Workspace::builder()
        .mount(HostMount::new(host.path()).at("m"))
        .mount(HostMount::new(host.path()).at("m/inner"))
        .build_blocking();
    assert!(twice.unwrap_err().to_string().contains("overlapping"));
    let missing = build(HostMount::new("/nowhere/at/all").at("m")).unwrap_err();
    assert!(matches!(missing, WorkspaceError::Io { .. }), "{missing}");
    let glob = build(HostMount::new(host.path()).at("m").include("a[")).unwrap_err();
    assert!(matches!(glob, WorkspaceError::BadGlob { .. }) && glob.to_string().contains("`a[`"), "{glob}");
}

#[test]
fn budgets_of_a_mount_and_of_all_mounts_are_enforced() {
    let host = host(&[("a", "12345"), ("b", "12345")]);
    let mount = |at: &str| HostMount::new(host.path()).at(at);
    assert!(build(mount("m").max_bytes(10)).is_ok());
    let error = build(mount("m").max_bytes(9)).unwrap_err();
    let WorkspaceError::BudgetExceeded { path, limit: 9 } = &error else { panic!("{error}") };
    assert!(path.ends_with("b"), "{error}");
    let both = |max| Workspace::builder().mount(mount("one")).mount(mount("two")).max_bytes(max).build_blocking();
    assert!(both(20).is_ok());
    let error = both(19).unwrap_err();
    assert!(matches!(error, WorkspaceError::BudgetExceeded { limit: 19, .. }), "{error}");
}

#[test]
fn the_fingerprint_depends_on_mounts_and_budgets_but_not_on_their_order() {
    let (one, two) = (host(&[("a", "a")]), host(&[("b", "b")]));
    let first = || HostMount::new(one.path()).at("one").include("a").include("b").max_bytes(5);
    let second = || HostMount::new(two.path()).at("two");
    let print = |builder: loomd_adapter::WorkspaceBuilder| builder.build_blocking().unwrap().fingerprint().to_owned();
    let usual = print(Workspace::builder().mount(first()).mount(second()));
    let turned = HostMount::new(one.path()).at("./one").include("b").include("a").max_bytes(5);
    assert_eq!(print(Workspace::builder().mount(second()).mount(turned)), usual);
    for other in [
        Workspace::builder().mount(first()),
        Workspace::builder().mount(first()).mount(second()).max_bytes(1000),
        Workspace::builder().mount(first()).mount(second().max_bytes(7)),
        Workspace::builder().mount(first()).mount(second().exclude("c")),
        Workspace::builder().mount(first()).mount(second().include("b")),
        Workspace::builder().mount(first()).mount(HostMount::new(two.path()).at("three")),
        Workspace::builder().mount(first()).mount(HostMount::new(one.path()).at("two")),
    ] {
        assert_ne!(print(other), usual);
    }
}

#[test]
fn the_section_of_a_workspace_describes_its_mounts() {
    let host = host(&[("a", "12345")]);
    symlink("a", host.path().join("link")).unwrap();
    let workspace =
        Workspace::builder().mount(HostMount::new(host.path()).at("repo")).max_bytes(99).build_blocking().unwrap();
    let text = Prompt::new("test", "workspace").section(workspace.section()).build().unwrap().render().text;
    assert!(text.contains("- `repo`: 1 files, 5 bytes, from `") && text.contains("at most 99 bytes"), "{text}");
    assert!(text.contains("1 links and special files are left out"), "{text}");
}
