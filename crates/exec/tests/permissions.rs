//! Permission profiles, tried by commands under every mechanism that can enforce them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use loomd_config::config_toml::FileAccess;
use loomd_config::permissions::{FileRule, Permissions, RulePath};
use loomd_exec::sandbox::{Sandbox, Surroundings};
use loomd_exec::{Command, Environment, Limits, run};
use loomd_protocol::AbsolutePathBuf;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A folder with a workspace in it, and files to be kept from commands.
struct World {
    _folder: TempDir,
    base: PathBuf,
}

const FILES: &[&str] =
    &["w/a", "w/.git/x", "w/docs/d", "w/docs/in/i", "w/secret/s", "w/secret/open/o", "shut/f", "key"];

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        for file in FILES {
            let path = base.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "content").unwrap();
        }
        Self { _folder: folder, base }
    }

    fn sandbox(&self, first: RulePath, access: FileAccess) -> Sandbox {
        let rule = |place, access| FileRule { path: place, access };
        let project = |path: &str, access| rule(RulePath::Project(path.into()), access);
        let other =
            |path: &str| rule(RulePath::Path(AbsolutePathBuf::new(self.base.join(path)).unwrap()), FileAccess::None);
        let files = vec![
            rule(first, access),
            project("", FileAccess::Write),
            project("docs", FileAccess::Read),
            project("docs/in", FileAccess::Write),
            project("secret", FileAccess::None),
            project("secret/open", FileAccess::Read),
            project("later", FileAccess::None),
            other("shut"),
            other("key"),
        ];
        let permissions = Permissions { files, ..Permissions::default() };
        Sandbox::of_permissions(&permissions, Surroundings::new(&self.base.join("w")))
    }

    async fn run(&self, sandbox: &Sandbox, script: &str) -> (i32, String) {
        let command = Command::new(["bash", "-c", script], self.base.join("w"), Environment::of_this_process());
        let helper = Path::new(env!("CARGO_BIN_EXE_exec-fixture"));
        let command = sandbox.wrap(&command, Some(helper)).unwrap();
        let done = run(&command, Limits::default(), &CancellationToken::new(), |_, _| {}).await.unwrap();
        (done.outcome.exit_code(), String::from_utf8_lossy(&done.aggregated()).into_owned())
    }

    /// What a command can do to each file: nothing, read it, or write it as well.
    async fn rights(&self, sandbox: &Sandbox) -> String {
        let script = format!(
            "for f in {} w/later; do r=; cat ../$f > /dev/null 2>&1 && r=r; (echo x >> ../$f) 2> /dev/null && r=${{r}}w; \
             echo \"$f ${{r:--}}\"; done; ls secret 2> /dev/null",
            FILES.join(" ")
        );
        self.run(sandbox, &script).await.1
    }
}

const EXPECTED: &str = "w/a rw\nw/.git/x r\nw/docs/d r\nw/docs/in/i rw\nw/secret/s -\nw/secret/open/o r\nshut/f -\n\
                        key -\nw/later -\n";

async fn check(name: &str, wrap: fn(Sandbox) -> Sandbox, bases: &[(RulePath, FileAccess)]) {
    for (place, access) in bases {
        let world = World::new();
        let sandbox = wrap(world.sandbox(place.clone(), *access));
        assert_eq!(world.rights(&sandbox).await, EXPECTED, "{name} {place:?} {access:?}");
        world.run(&sandbox, "echo x > ../new").await;
        assert_eq!(world.base.join("new").exists(), *access == FileAccess::Write, "{name} {place:?}");
        assert!(!world.base.join("w/later").is_file());
    }
}

const BASES: &[(RulePath, FileAccess)] =
    &[(RulePath::Root, FileAccess::Read), (RulePath::Minimal, FileAccess::Read), (RulePath::Root, FileAccess::Write)];

#[tokio::test]
async fn a_profile_holds_in_the_built_in_sandbox() {
    check("built-in", |sandbox| sandbox, BASES).await;
}

#[tokio::test]
async fn a_profile_holds_in_bubblewrap() {
    if std::process::Command::new("bwrap").arg("--version").output().is_err() {
        return eprintln!("skipped: bubblewrap is not installed here");
    }
    // A bubblewrap that commands can write is not used, so not with a base in which everything is writable.
    check("bubblewrap", Sandbox::with_bubblewrap_only, &BASES[..2]).await;
}

#[tokio::test]
async fn a_profile_that_landlock_cannot_enforce_is_refused() {
    let world = World::new();
    let sandbox = world.sandbox(RulePath::Root, FileAccess::Read).with_landlock_only();
    let (code, said) = world.run(&sandbox, "echo ran").await;
    assert_eq!(
        (code, said.as_str()),
        (
            125,
            "sandbox: this sandbox cannot keep parts of a folder from the command: Landlock cannot take back what lies in \
             a folder\n"
        )
    );
}
