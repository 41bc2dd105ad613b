//! `git` commands that are known to be safe start no programs that a repository names.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use loomd_policy::{Trust, is_known_safe, restrain_git};

/// A repository with two commits and a change, and a program that leaves a mark when it is started.
struct Hostile {
    folder: tempfile::TempDir,
}

impl Hostile {
    fn new() -> Self {
        let hostile = Self { folder: tempfile::tempdir().unwrap() };
        let program = hostile.program();
        fs::create_dir(hostile.repository()).unwrap();
        fs::write(&program, format!("#!/bin/sh\necho ran >> {}\ncat\n", hostile.mark().display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        hostile.git(&["init", "-q"]);
        fs::write(hostile.repository().join("f"), "1\n").unwrap();
        fs::write(hostile.repository().join(".gitattributes"), "f filter=x diff=x\n").unwrap();
        hostile.git(&["add", "-A"]);
        hostile.git(&["commit", "-qm", "1"]);
        fs::write(hostile.repository().join("f"), "2\n").unwrap();
        hostile.git(&["commit", "-qam", "2"]);
        fs::write(hostile.repository().join("f"), "3\n").unwrap();
        hostile
    }

    fn repository(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("program")
    }

    fn mark(&self) -> PathBuf {
        self.folder.path().join("mark")
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let home = self.folder.path().to_str().unwrap().to_owned();
        let who = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"]
            .map(|name| (name, "x".to_owned()));
        let all = who.into_iter().chain([("PATH", std::env::var("PATH").unwrap()), ("HOME", home)]);
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn git(&self, words: &[&str]) {
        let mut git = Command::new("git");
        git.args(words).current_dir(self.repository()).env_clear().envs(self.environment()).stdout(Stdio::null());
        assert!(git.status().unwrap().success(), "git {words:?}");
    }

    /// Whether a script is known to be safe, run in the repository.
    fn is_safe(&self, script: &str) -> bool {
        self.is_safe_in(&self.repository(), script)
    }

    fn is_safe_in(&self, cwd: &Path, script: &str) -> bool {
        let argv = ["/bin/bash", "-c", script].map(str::to_owned);
        is_known_safe(&argv, &Trust { search: "/usr/bin:/bin", cwd, login_shell: None, can_write: &|_| false })
    }

    /// Whether a script starts the program, run with the environment of known-safe commands.
    fn starts_program(&self, script: &str) -> bool {
        let _ = fs::remove_file(self.mark());
        let mut env = self.environment();
        restrain_git(&mut env);
        let mut shell = Command::new("/bin/bash");
        shell.args(["-c", script]).current_dir(self.repository()).env_clear().envs(env);
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        self.mark().exists()
    }
}

const SCRIPTS: &[&str] = &[
    "git status",
    "git status -v",
    "git diff",
    "git diff HEAD~",
    "git log -p",
    "git show",
    "git branch -v",
    "git log --oneline",
];

/// A repository whose configuration names the program.
fn configured(key: &str) -> Hostile {
    let hostile = Hostile::new();
    let program = hostile.program();
    hostile.git(&["config", key, program.to_str().unwrap()]);
    hostile
}

#[test]
fn restrained_git_ignores_settings_that_start_programs() {
    for key in
        ["core.fsmonitor", "core.pager", "pager.log", "pager.diff", "pager.status", "alias.status", "core.sshCommand"]
    {
        let hostile = configured(key);
        for script in SCRIPTS {
            assert!(hostile.is_safe(script), "{script} with {key}");
            // Paging needs a terminal.
            for script in [(*script).to_owned(), format!("script -qec '{script}' /dev/null")] {
                assert!(!hostile.starts_program(&script), "{script} with {key}");
            }
        }
    }
}

#[test]
fn hooks_do_not_run() {
    let hostile = Hostile::new();
    fs::copy(hostile.program(), hostile.repository().join(".git/hooks/post-index-change")).unwrap();
    for script in SCRIPTS {
        assert!(!hostile.starts_program(&format!("touch f; {script}")), "{script}");
    }
}

#[test]
fn git_is_not_known_safe_in_a_repository_with_filters_or_drivers() {
    for key in [
        "filter.x.clean",
        "filter.x.process",
        "diff.x.textconv",
        "diff.x.command",
        "diff.external",
        "merge.x.driver",
        "gpg.program",
        "include.path",
        "FILTER.x.Clean",
    ] {
        let hostile = configured(key);
        for script in SCRIPTS {
            assert!(!hostile.is_safe(script), "{script} with {key}");
        }
        let outside = hostile.folder.path();
        for script in [
            "git -C repository status",
            "cd repository && git status",
            "cd repository/.git; git log",
            "bash -c 'cd repository && git status'",
        ] {
            assert!(!hostile.is_safe_in(outside, script), "{script} with {key}");
        }
        assert!(hostile.is_safe_in(outside, "git status"));
        assert!(!hostile.is_safe_in(&hostile.repository().join(".git"), "git log"));
    }
}

#[test]
fn git_is_not_known_safe_in_a_repository_with_submodules() {
    let hostile = Hostile::new();
    assert!(hostile.is_safe("git status"));
    let inner = hostile.repository().join("inner");
    fs::create_dir(&inner).unwrap();
    hostile.git(&["-C", "inner", "init", "-q"]);
    hostile.git(&["-C", "inner", "commit", "-q", "--allow-empty", "-m", "1"]);
    assert!(hostile.is_safe("git status"));
    hostile.git(&["-c", "advice.addEmbeddedRepo=false", "add", "inner"]);
    for version in ["2", "4"] {
        hostile.git(&["update-index", "--index-version", version]);
        assert!(!hostile.is_safe("git status"), "with an index of version {version}");
    }
    hostile.git(&["rm", "-qf", "--cached", "inner"]);
    assert!(hostile.is_safe("git status"));
}

#[test]
fn git_is_not_known_safe_in_a_bare_repository() {
    let hostile = Hostile::new();
    hostile.git(&["init", "-q", "--bare", "bare"]);
    hostile.git(&["-C", "bare", "config", "core.fsmonitor", hostile.program().to_str().unwrap()]);
    assert!(!hostile.is_safe("git -C bare status"));
    assert!(!hostile.is_safe("cd bare && git log"));
    assert!(!hostile.starts_program("git -C bare status"));
}

#[test]
fn the_repository_behind_a_gitdir_file_is_inspected() {
    let hostile = configured("filter.x.clean");
    let linked = hostile.folder.path().join("linked");
    hostile.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    assert!(!hostile.is_safe_in(&linked, "git status"));
    let pipe = hostile.folder.path().join("pipe");
    fs::create_dir(&pipe).unwrap();
    assert!(Command::new("mkfifo").arg(pipe.join(".git")).status().unwrap().success());
    assert!(!hostile.is_safe_in(&pipe, "git status"));
}

#[test]
fn restraining_git_keeps_configuration_variables_of_the_user() {
    let mut env: BTreeMap<_, _> = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "user.name"),
        ("GIT_CONFIG_VALUE_0", "me"),
        ("GIT_EXTERNAL_DIFF", "x"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    restrain_git(&mut env);
    let get = |name: &str| env.get(name).map(String::as_str);
    assert_eq!((get("GIT_CONFIG_KEY_0"), get("GIT_CONFIG_KEY_1")), (Some("user.name"), Some("core.fsmonitor")));
    assert_eq!((get("GIT_CONFIG_COUNT"), get("GIT_EXTERNAL_DIFF")), (Some("6"), None));
}
