//! Git, run on a hostile repository, starts none of the programs that its configuration names. Each case is tried with
//! the settings and without the sandbox, with the sandbox and without the settings, and with both. Plain git must start
//! the program, else the case would prove nothing.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use loomd_exec::ConfinedGit;
use loomd_git::{GitOutput, Invocation, Launcher, diff_to_remote, facts, merge_base};

fn confined() -> ConfinedGit {
    ConfinedGit::with_helper(env!("CARGO_BIN_EXE_exec-fixture"))
}

/// Git without a sandbox, protected by the settings only.
struct Unconfined;

impl Launcher for Unconfined {
    async fn launch(&self, invocation: Invocation) -> Option<GitOutput> {
        let mut git = Command::new("git");
        git.args(invocation.arguments).envs(invocation.variables).current_dir(invocation.folder);
        let output = git.output().unwrap();
        Some(GitOutput { code: output.status.code()?, stdout: output.stdout })
    }
}

/// A repository with a pushed commit, and a change since.
struct Hostile {
    _folder: tempfile::TempDir,
    base: PathBuf,
    repo: PathBuf,
}

impl Hostile {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let hostile = Self { repo: base.join("repo"), _folder: folder, base };
        fs::create_dir(&hostile.repo).unwrap();
        hostile.script("canary.sh", &format!("touch {}", hostile.canary().display()));
        hostile.git(&["init", "-q", "-b", "main"]);
        hostile.git(&["config", "remote.origin.url", "ssh://host.invalid/repo"]);
        hostile.put("f.txt", "one\n");
        hostile.commit();
        hostile.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
        hostile.put("f.txt", "two\n");
        hostile
    }

    fn canary(&self) -> PathBuf {
        self.base.join("canary")
    }

    /// A program that creates the canary file.
    fn program(&self) -> String {
        self.base.join("canary.sh").display().to_string()
    }

    fn script(&self, name: &str, text: &str) {
        let path = self.base.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.repo.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.repo, arguments)
    }

    fn git_in(&self, folder: &Path, arguments: &[&str]) -> String {
        let who = ["-c", "user.name=t", "-c", "user.email=t@example.test", "-c", "protocol.file.allow=always"];
        let output = Command::new("git").args(who).args(arguments).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self) {
        self.git(&["add", "."]);
        self.git(&["commit", "-qm", "x"]);
    }

    fn set(&self, key: &str, value: &str) {
        self.git(&["config", key, value]);
    }

    fn plain(&self, arguments: &[&str]) -> Invocation {
        Invocation {
            arguments: arguments.iter().map(|&argument| argument.into()).collect(),
            variables: Vec::new(),
            folder: self.repo.clone(),
            work_tree: self.repo.clone(),
        }
    }

    /// Whether the canary file exists. Removes it.
    fn fell(&self) -> bool {
        fs::remove_file(self.canary()).is_ok()
    }

    /// `diff`: whether git can make a diff without running the program.
    async fn check(&self, bait: &[&str], diff: bool) {
        // The setup may have created the canary.
        self.fell();
        Unconfined.launch(self.plain(bait)).await.unwrap();
        assert!(self.fell(), "plain git does not run it, so this proves nothing");

        let by_settings = diff_to_remote(&self.repo, &Unconfined).await;
        assert!(!self.fell(), "the settings let it run");
        confined().launch(self.plain(bait)).await.unwrap();
        assert!(!self.fell(), "the sandbox let it write");
        let by_both = diff_to_remote(&self.repo, &confined()).await;
        assert!(!self.fell());

        assert_eq!(by_settings, by_both);
        let found = by_both.map(|found| found.diff).unwrap_or_default();
        assert_eq!(found.contains("-one\n+two\n"), diff, "{found}");
    }
}

const DIFF: &[&str] = &["diff", "HEAD"];

#[tokio::test]
async fn fsmonitor_does_not_run() {
    let hostile = Hostile::new();
    hostile.set("core.fsmonitor", &hostile.program());
    hostile.check(DIFF, true).await;
}

#[tokio::test]
async fn fsmonitor_of_included_and_work_tree_configuration_does_not_run() {
    let hostile = Hostile::new();
    hostile.put(".git/more", &format!("[core]\nfsmonitor = {}\n", hostile.program()));
    hostile.set("include.path", "more");
    hostile.check(DIFF, true).await;

    let hostile = Hostile::new();
    hostile.set("extensions.worktreeConfig", "true");
    hostile.put(".git/config.worktree", &format!("[core]\nfsmonitor = {}\n", hostile.program()));
    hostile.check(DIFF, true).await;
}

#[tokio::test]
async fn clean_filters_do_not_run() {
    for attributes in [".gitattributes", ".git/info/attributes"] {
        let hostile = Hostile::new();
        hostile.put(attributes, "* filter=evil\n");
        hostile.set("filter.evil.clean", &format!("{}; cat", hostile.program()));
        hostile.set("filter.evil.required", "true");
        hostile.check(DIFF, true).await;
    }
}

#[tokio::test]
async fn process_filters_with_odd_names_do_not_run() {
    let hostile = Hostile::new();
    hostile.put(".git/info/attributes", "* filter=e.v=il\n");
    hostile.set("filter.e.v=il.process", &hostile.program());
    hostile.set("filter.e.v=il.required", "true");
    hostile.check(DIFF, true).await;
}

#[tokio::test]
async fn filters_do_not_run_on_untracked_files() {
    let hostile = Hostile::new();
    hostile.git(&["checkout", "-q", "f.txt"]);
    hostile.put("f.txt", "two\n");
    hostile.put("new.dat", "new\n");
    hostile.put(".git/info/attributes", "*.dat filter=evil\n");
    hostile.set("filter.evil.clean", &format!("{}; cat", hostile.program()));
    hostile.check(&["diff", "--no-index", "--", "/dev/null", "new.dat"], true).await;
}

#[tokio::test]
async fn external_diffs_and_text_conversions_do_not_run() {
    let hostile = Hostile::new();
    hostile.set("diff.external", &hostile.program());
    hostile.check(DIFF, true).await;
    for key in ["diff.evil.command", "diff.evil.textconv"] {
        let hostile = Hostile::new();
        hostile.put(".git/info/attributes", "*.txt diff=evil\n");
        hostile.set(key, &hostile.program());
        hostile.check(DIFF, true).await;
    }
}

#[tokio::test]
async fn hooks_do_not_run() {
    let hostile = Hostile::new();
    fs::create_dir_all(hostile.repo.join(".git/hooks")).unwrap();
    fs::copy(hostile.program(), hostile.repo.join(".git/hooks/post-index-change")).unwrap();
    // Makes the index stale, so that git writes it anew.
    hostile.put("g.txt", "same\n");
    hostile.git(&["add", "g.txt"]);
    let g = fs::File::options().write(true).open(hostile.repo.join("g.txt")).unwrap();
    g.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    hostile.check(&["status"], true).await;
}

#[tokio::test]
async fn submodules_are_not_looked_into() {
    let hostile = Hostile::new();
    let other = hostile.base.join("other");
    fs::create_dir(&other).unwrap();
    hostile.git_in(&other, &["init", "-q", "-b", "main"]);
    fs::write(other.join("x"), "x\n").unwrap();
    hostile.git_in(&other, &["add", "."]);
    hostile.git_in(&other, &["commit", "-qm", "x"]);
    hostile.git(&["submodule", "--quiet", "add", other.to_str().unwrap(), "sub"]);
    hostile.git(&["commit", "-qm", "sub", "--", "sub", ".gitmodules"]);
    // Another repository in place of the submodule's own, as a command could put there.
    fs::remove_file(hostile.repo.join("sub/.git")).unwrap();
    fs::remove_dir_all(hostile.repo.join("sub")).unwrap();
    hostile.git(&["clone", "-q", other.to_str().unwrap(), "sub"]);
    hostile.git_in(&hostile.repo.join("sub"), &["config", "core.fsmonitor", &hostile.program()]);
    for option in ["short", "diff"] {
        hostile.set("diff.submodule", option);
        hostile.check(DIFF, true).await;
    }
}

#[tokio::test]
async fn objects_that_are_missing_are_not_fetched() {
    let hostile = Hostile::new();
    let blob = hostile.git(&["rev-parse", "HEAD:f.txt"]);
    fs::remove_file(hostile.repo.join(".git/objects").join(&blob[..2]).join(&blob[2..])).unwrap();
    hostile.set("core.repositoryFormatVersion", "1");
    hostile.set("extensions.partialClone", "origin");
    hostile.set("remote.origin.promisor", "true");
    hostile.set("core.sshCommand", &hostile.program());
    hostile.check(DIFF, false).await;

    hostile.set("protocol.ext.allow", "always");
    hostile.set("remote.origin.url", &format!("ext::{}", hostile.program()));
    hostile.check(DIFF, false).await;
}

#[tokio::test]
async fn another_folder_is_not_taken_for_the_work_tree() {
    let hostile = Hostile::new();
    let secret = hostile.base.join("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("f.txt"), "secret\n").unwrap();
    hostile.set("core.worktree", secret.to_str().unwrap());
    let plain = Unconfined.launch(hostile.plain(DIFF)).await.unwrap();
    assert!(String::from_utf8_lossy(&plain.stdout).contains("secret"), "plain git does not show it");
    let found = diff_to_remote(&hostile.repo, &confined()).await.unwrap();
    assert!(found.diff.contains("-one\n+two\n") && !found.diff.contains("secret"), "{}", found.diff);
}

#[tokio::test]
async fn an_ordinary_repository_is_answered_as_by_plain_git() {
    let hostile = Hostile::new();
    hostile.put("sub/new file", "new\n");
    let pushed = hostile.git(&["rev-parse", "HEAD"]);
    let sub = hostile.repo.join("sub");
    let found = diff_to_remote(&sub, &confined()).await.unwrap();
    let untracked = Unconfined.launch(Invocation {
        folder: sub.clone(),
        ..hostile.plain(&["diff", "--binary", "--no-index", "--", "/dev/null", "new file"])
    });
    let expected =
        format!("{}\n{}", hostile.git(&["diff", &pushed]), String::from_utf8(untracked.await.unwrap().stdout).unwrap());
    assert_eq!((found.sha, found.diff), (pushed.clone(), expected));
    assert_eq!(merge_base(&sub, "origin/main", &confined()).await, Some(pushed.clone()));
    // Only the program knows what an address is rewritten to.
    hostile.set("url.https://example.test/.insteadOf", "ssh://host.invalid/");
    let facts = facts(&sub, &confined()).await.unwrap();
    assert_eq!(facts.origin_url.as_deref(), Some("https://example.test/repo"));
}

/// `run_if_helper` was not called in this process, so there is no helper that could confine git.
#[tokio::test]
async fn git_does_not_run_where_it_cannot_be_confined() {
    let hostile = Hostile::new();
    assert_eq!(diff_to_remote(&hostile.repo, &ConfinedGit::default()).await, None);
}
