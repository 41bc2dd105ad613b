//! Sandboxes of one thread keep their roots, and their view of our home, while files and folders change.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use loomd_exec::sandbox::{Grant, Roots, Sandbox, Surroundings};
use loomd_exec::{Command, Environment, Limits, run};
use loomd_protocol::{AbsolutePathBuf, ReadOnlyAccess, SandboxPolicy};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

struct Thread {
    _folder: TempDir,
    base: PathBuf,
    roots: Roots,
    writable: Vec<PathBuf>,
}

impl Thread {
    fn new(folders: &[&str], writable: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        for path in folders {
            fs::create_dir_all(base.join(path)).unwrap();
        }
        let writable = writable.iter().map(|path| base.join(path)).collect();
        Self { _folder: folder, base, roots: Roots::default(), writable }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    fn sandbox(&self) -> Sandbox {
        let policy = SandboxPolicy::WorkspaceWrite {
            writable_roots: self.writable.iter().filter_map(AbsolutePathBuf::new).collect(),
            read_only_access: ReadOnlyAccess::FullAccess,
            network_access: false,
            exclude_tmpdir_env_var: true,
            exclude_slash_tmp: true,
        };
        let (cwd, home) = (self.path("w"), self.path("w/home"));
        let surroundings = Surroundings { home: Some(&home), roots: Some(&self.roots), ..Surroundings::new(&cwd) };
        Sandbox::new(&policy, surroundings).unwrap()
    }

    async fn run(&self, sandbox: &Sandbox, script: &str) -> String {
        let command = Command::new(["bash", "-c", script], self.path("w"), Environment::of_this_process());
        let helper = Path::new(env!("CARGO_BIN_EXE_exec-fixture"));
        let command = sandbox.wrap(&command, Some(helper)).unwrap();
        let done = run(&command, Limits::default(), &CancellationToken::new(), |_, _| {}).await.unwrap();
        String::from_utf8_lossy(&done.aggregated()).into_owned()
    }

    /// The sandbox under each mechanism that works here.
    fn means(&self) -> Vec<Sandbox> {
        let bubblewrap = std::process::Command::new("bwrap").arg("--version").output().is_ok();
        let bubblewrap = bubblewrap.then(|| self.sandbox().with_bubblewrap_only());
        [Some(self.sandbox()), bubblewrap].into_iter().flatten().collect()
    }
}

#[tokio::test]
async fn a_root_that_was_replaced_stops_the_next_command_with_a_clear_error() {
    let thread = Thread::new(&["w", "extra", "outside"], &["extra"]);
    assert_eq!(thread.run(&thread.sandbox(), "touch ../extra/a && echo fine").await, "fine\n");
    let extra = thread.path("extra");
    fs::rename(&extra, thread.path("moved")).unwrap();
    symlink(thread.path("outside"), &extra).unwrap();
    for sandbox in thread.means() {
        let said = thread.run(&sandbox, "touch ../extra/b").await;
        let path = extra.display();
        let expected = format!(
            "sandbox: a root of the sandbox has changed: {path} is not what it was when access to it was granted\n"
        );
        assert_eq!(said, expected);
    }
    assert!(!thread.path("outside/b").exists());
}

#[tokio::test]
async fn a_missing_root_is_granted_later_only_if_no_command_could_create_it() {
    let thread = Thread::new(&["w", "outside"], &["w/by-command", "by-user"]);
    thread.run(&thread.sandbox(), "ln -s ../outside by-command").await;
    fs::create_dir(thread.path("by-user")).unwrap();
    let said = thread.run(&thread.sandbox(), "touch ../by-user/a by-command/b 2> /dev/null; ls ../by-user").await;
    assert_eq!(said, "a\n");
    assert!(!thread.path("outside/b").exists());
}

#[tokio::test]
async fn a_grant_keeps_the_folder_that_its_path_named() {
    let thread = Thread::new(&["w", "one", "two"], &[]);
    let link = thread.path("w/link");
    symlink(thread.path("one"), &link).unwrap();
    let grant = Grant::new(&link);
    fs::remove_file(&link).unwrap();
    symlink(thread.path("two"), &link).unwrap();
    let mut sandbox = thread.sandbox();
    sandbox.grant_write(&grant);
    thread.run(&sandbox, "touch ../one/a ../two/b").await;
    assert!(thread.path("one/a").exists() && !thread.path("two/b").exists());
}

#[tokio::test]
async fn the_home_in_a_workspace_is_read_only_except_memories() {
    let thread = Thread::new(&["w/home/memories", "w/home/sessions"], &["w/home/memories"]);
    fs::write(thread.path("w/home/config.toml"), "model = 'm'\n").unwrap();
    fs::write(thread.path("w/home/auth.json"), "secret\n").unwrap();
    symlink("config.toml", thread.path("w/home/link")).unwrap();
    for sandbox in thread.means() {
        let script = "cat home/link; touch home/memories/a && ls home; rm home/memories/a; \
                      { touch home/new home/sessions/new; cat home/auth.json; rm home/config.toml; } 2> /dev/null";
        let said = thread.run(&sandbox, script).await;
        assert_eq!(said, "model = 'm'\nconfig.toml\nlink\nmemories\nsessions\n");
    }
    let sandbox = thread.sandbox();
    let can = |path: &str| (sandbox.can_read(&thread.path(path)), sandbox.can_write(&thread.path(path)));
    assert_eq!(can("w/home/auth.json"), (false, false));
    assert_eq!(can("w/home/rules/default.rules"), (true, false));
    assert_eq!(can("w/home/memories/a"), (true, true));
}

#[tokio::test]
async fn a_write_grant_of_the_home_leaves_it_read_only() {
    let thread = Thread::new(&["w/home"], &[]);
    fs::write(thread.path("w/home/auth.json"), "secret\n").unwrap();
    for mut sandbox in thread.means() {
        sandbox.grant_write(&Grant::new(thread.path("w/home")));
        let script = "{ touch home/new || cat home/auth.json; } 2> /dev/null || echo fine";
        assert_eq!(thread.run(&sandbox, script).await, "fine\n");
    }
}

#[tokio::test]
async fn credentials_that_are_refreshed_stay_hidden_from_a_command_that_runs() {
    let thread = Thread::new(&["w/home"], &[]);
    let auth = thread.path("w/home/auth.json");
    fs::write(&auth, "secret\n").unwrap();
    for sandbox in thread.means() {
        let script = "touch ready; until [ -e go ]; do :; done; rm go; cat home/auth.json 2> /dev/null; ls home";
        let refresh = async {
            while !thread.path("w/ready").exists() {
                tokio::task::yield_now().await;
            }
            fs::remove_file(thread.path("w/ready")).unwrap();
            fs::write(thread.path("w/home/next"), "secret\n").unwrap();
            fs::rename(thread.path("w/home/next"), &auth).unwrap();
            fs::write(thread.path("w/go"), "").unwrap();
        };
        let (said, ()) = tokio::join!(thread.run(&sandbox, script), refresh);
        assert_eq!(said, "");
    }
}

#[tokio::test]
async fn every_mount_of_a_sandbox_is_nodev_and_nosuid() {
    let thread = Thread::new(&["w/home"], &[]);
    // Bubblewrap sees to this itself; its table also lists mounts of the host that others hide.
    let table = thread.run(&thread.sandbox(), "cat /proc/self/mountinfo").await;
    assert!(table.lines().count() > 5, "{table}");
    for line in table.lines() {
        let mut fields = line.split(' ');
        let (place, options) = (fields.nth(4).unwrap(), fields.next().unwrap());
        let options: Vec<_> = options.split(',').collect();
        assert!(options.contains(&"nosuid"), "{line}");
        let device = place.starts_with("/dev/") && place != "/dev/shm";
        assert!(device || options.contains(&"nodev"), "{line}");
    }
}
