//! The git program in a read-only sandbox without network. See [`loomd_git::Launcher`] for why.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loomd_git::{GitOutput, Invocation, Launcher};
use loomd_protocol::{ReadOnlyAccess, SandboxPolicy};
use tokio_util::sync::CancellationToken;

use crate::sandbox::{Sandbox, Surroundings};
use crate::{Command, Environment, Limits, Outcome, run};

/// The timeout of one run of git.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The most output of one run of git.
const MAX_OUTPUT: usize = 64 << 20;

/// The variables that git gets from this process: those that locate programs and the user's configuration.
const KEPT: &[&str] = &["HOME", "LANG", "LOGNAME", "USER", "XDG_CONFIG_HOME"];

/// Runs git confined, or not at all.
#[derive(Clone, Debug, Default)]
pub struct ConfinedGit {
    helper: Option<PathBuf>,
}

impl ConfinedGit {
    /// Confines by another program whose `main` calls [`run_if_helper`](crate::run_if_helper), not by this one.
    pub fn with_helper(helper: impl Into<PathBuf>) -> Self {
        Self { helper: Some(helper.into()) }
    }

    fn command(&self, invocation: &Invocation) -> Option<Command> {
        let ours = Environment::of_this_process();
        let folders = program_folders(ours.get("PATH")?, &invocation.work_tree);
        let program = folders.iter().find_map(|folder| program(folder, &invocation.work_tree))?;
        let mut env: Environment = KEPT.iter().filter_map(|name| Some((*name, ours.get(name)?))).collect();
        env.set("PATH", std::env::join_paths(&folders).ok()?.into_string().ok()?);
        for (name, value) in &invocation.variables {
            env.set(name, value);
        }
        let mut argv = vec![program.into_os_string().into_string().ok()?];
        argv.extend(invocation.arguments.iter().cloned());
        let command = Command::new(argv, &invocation.folder, env);
        let policy = SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false };
        let sandbox = Sandbox::new(&policy, Surroundings::new(&invocation.folder))?;
        sandbox.wrap(&command, self.helper.as_deref()).ok()
    }
}

impl Launcher for ConfinedGit {
    async fn launch(&self, invocation: Invocation) -> Option<GitOutput> {
        let command = self.command(&invocation)?;
        // One byte more than the limit, so that output beyond it is recognised.
        let limits = Limits { timeout: Some(TIMEOUT), retained: MAX_OUTPUT + 1 };
        let finished = run(&command, limits, &CancellationToken::new(), |_, _| {}).await.ok()?;
        match finished.outcome {
            Outcome::Ended(exit) if finished.stdout.len() <= MAX_OUTPUT => {
                Some(GitOutput { code: exit.code(), stdout: finished.stdout })
            }
            _ => None,
        }
    }
}

/// The folders of a `PATH` that lie outside of the work tree. Relative ones would lie in it.
fn program_folders(path: &str, work_tree: &Path) -> Vec<PathBuf> {
    let outside = |folder: &PathBuf| folder.canonicalize().is_ok_and(|real| !real.starts_with(work_tree));
    std::env::split_paths(path).filter(|folder| folder.is_absolute()).filter(outside).collect()
}

/// The git in a folder, unless it is a link into the work tree.
fn program(folder: &Path, work_tree: &Path) -> Option<PathBuf> {
    let path = folder.join("git");
    let metadata = fs::metadata(&path).ok()?;
    let executable = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
    (executable && !path.canonicalize().ok()?.starts_with(work_tree)).then_some(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_git_in_the_work_tree_is_not_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (tree, bin) = (root.join("tree"), root.join("bin"));
        for folder in [&tree.join("bin"), &bin, &root.join("linked"), &root.join("other")] {
            fs::create_dir_all(folder).unwrap();
        }
        for file in [tree.join("bin/git"), bin.join("git"), root.join("other/git")] {
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::set_permissions(root.join("other/git"), fs::Permissions::from_mode(0o644)).unwrap();
        symlink(tree.join("bin/git"), root.join("linked/git")).unwrap();
        symlink(tree.join("bin"), root.join("alias")).unwrap();
        let at = |name: &str| root.join(name).display().to_string();
        let names = ["tree/bin", "alias", "linked", "other", "missing", "bin"].map(at).join(":");
        let folders = program_folders(&format!("bin:.::{names}"), &tree);
        assert_eq!(folders, ["linked", "other", "bin"].map(|name| root.join(name)));
        assert_eq!(folders.iter().find_map(|folder| program(folder, &tree)), Some(bin.join("git")));
    }
}
