//! From a policy to what exactly may be touched, given where it applies.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use loomd_protocol::{NetworkAccess, ReadOnlyAccess, SandboxPolicy};

use super::layers::Layer;
use super::{Exception, Means, Sandbox, WritableRoot};

/// Where a policy applies.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The folder that "workspace" means.
    pub cwd: &'a Path,
    /// `$TMPDIR`, if set.
    pub tmpdir: Option<&'a Path>,
}

/// What programs need to run at all, for those who may not read everything.
pub(super) const PLATFORM: &[&str] =
    &["/bin", "/sbin", "/usr", "/etc", "/lib", "/lib64", "/nix/store", "/run/current-system/sw"];
/// What decides how tools and agents behave, so commands must not change it.
const PROTECTED: &[&str] = &[".git", ".agents", ".codex"];
/// Protected in the workspace even before it exists: the next start would read it.
const PROTECTED_ABSENT: &str = ".codex";

/// Whether a policy keeps commands from the network.
pub fn network_disabled(policy: &SandboxPolicy) -> bool {
    match policy {
        SandboxPolicy::DangerFullAccess => false,
        SandboxPolicy::ExternalSandbox { network_access } => *network_access == NetworkAccess::Restricted,
        SandboxPolicy::ReadOnly { network_access, .. } | SandboxPolicy::WorkspaceWrite { network_access, .. } => {
            !network_access
        }
    }
}

impl Sandbox {
    /// `None` when the policy leaves nothing for us to enforce.
    pub fn new(policy: &SandboxPolicy, surroundings: Surroundings) -> Option<Self> {
        let network = !network_disabled(policy);
        let (access, roots) = match policy {
            SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => return None,
            SandboxPolicy::ReadOnly { access, .. } => (access, Vec::new()),
            SandboxPolicy::WorkspaceWrite {
                writable_roots,
                read_only_access,
                exclude_tmpdir_env_var,
                exclude_slash_tmp,
                ..
            } => {
                let mut roots = vec![surroundings.cwd];
                roots.extend(writable_roots.iter().map(|root| &**root));
                roots.extend((!exclude_slash_tmp).then_some(Path::new("/tmp")));
                let tmpdir = surroundings.tmpdir.filter(|path| path.is_absolute());
                roots.extend(tmpdir.filter(|_| !exclude_tmpdir_env_var));
                (read_only_access, roots)
            }
        };
        let mut sandbox = Self::with_readable(readable(access), network);
        for root in roots {
            sandbox.grant_write(root);
        }
        sandbox.protect_absent(surroundings.cwd);
        Some(sandbox)
    }

    pub(super) fn with_readable(readable: Option<Vec<PathBuf>>, network: bool) -> Self {
        let (writable, exceptions, doors) = Default::default();
        Self { readable, writable, exceptions, network, doors, means: Means::default() }
    }

    /// What must not come to be in the workspace.
    pub(super) fn protect_absent(&mut self, cwd: &Path) {
        if let Ok(cwd) = cwd.canonicalize()
            && let Some(root) = self.writable.iter_mut().find(|root| root.path == cwd)
        {
            let absent = cwd.join(PROTECTED_ABSENT);
            root.absent.extend((!is_there(&absent)).then_some(absent));
        }
    }

    /// Lets commands write to a folder or file. What does not exist cannot be granted.
    pub fn grant_write(&mut self, path: &Path) {
        let Ok(path) = path.canonicalize() else { return };
        self.exceptions.retain(|exception| exception.path != path);
        if self.writable.iter().any(|root| root.path == path) {
            return;
        }
        let protected = protected(&path);
        self.writable.push(WritableRoot { path, protected, absent: Vec::new() });
        // Outer ones first, so that what is inside them has the last word.
        self.writable.sort_by_key(|root| root.path.components().count());
    }

    /// Lets commands read a folder or file.
    pub fn grant_read(&mut self, path: &Path) {
        if let Ok(real) = path.canonicalize()
            && matches!(self.innermost(&real), Some(Layer::Closed(_)))
        {
            self.exceptions.retain(|exception| exception.path != real);
            self.exceptions.push(Exception { path: real, readable: true });
        }
        if let Some(readable) = &mut self.readable {
            readable.push(path.to_owned());
        }
    }

    pub fn grant_network(&mut self) {
        self.network = true;
    }

    /// Takes the network back, whatever was granted.
    pub fn deny_network(&mut self) {
        self.network = false;
    }

    pub fn network_disabled(&self) -> bool {
        !self.network
    }

    /// Whether a command could write to this path, which need not exist.
    pub fn can_write(&self, path: &Path) -> bool {
        real(path).is_some_and(|path| self.can_write_resolved(&path))
    }

    /// The same for a path without links. It is not resolved again, so the answer is about exactly this path.
    pub fn can_write_resolved(&self, path: &Path) -> bool {
        match self.innermost(path) {
            Some(Layer::Writable(root)) => {
                !root.protected.iter().chain(&root.absent).any(|kept| path.starts_with(kept))
            }
            Some(Layer::ReadOnly(_) | Layer::Closed(_) | Layer::Pinned(_)) | None => false,
        }
    }

    /// Whether a command could read this path, which need not exist.
    pub fn can_read(&self, path: &Path) -> bool {
        let Some(path) = real(path) else { return false };
        match (self.innermost(&path), &self.readable) {
            (Some(Layer::Closed(_)), _) => false,
            (Some(_), _) | (None, None) => true,
            (None, Some(roots)) => roots.iter().any(|root| real(root).is_some_and(|root| path.starts_with(root))),
        }
    }
}

fn readable(access: &ReadOnlyAccess) -> Option<Vec<PathBuf>> {
    let ReadOnlyAccess::Restricted { include_platform_defaults, readable_roots } = access else { return None };
    let platform = PLATFORM.iter().map(PathBuf::from).filter(|_| *include_platform_defaults);
    Some(platform.chain(readable_roots.iter().map(|root| root.to_path_buf())).collect())
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// What must not change in a writable folder, where links there lead, and where its repository really is.
fn protected(root: &Path) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    for name in PROTECTED {
        let path = root.join(name);
        if !is_there(&path) {
            continue;
        }
        found.extend(git_folder(&path));
        if path.is_symlink() {
            found.extend(path.canonicalize().ok());
        }
        found.insert(path);
    }
    found.into_iter().collect()
}

/// Where a `.git` that is a file says the repository is.
fn git_folder(path: &Path) -> Option<PathBuf> {
    if !path.is_file() {
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    let folder = text.strip_prefix("gitdir:")?.trim();
    path.parent()?.join(folder).canonicalize().ok()
}

/// The path without links, as far as it exists.
pub(super) fn real(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    Some(real(path.parent()?)?.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use loomd_protocol::AbsolutePathBuf;

    use super::*;

    fn workspace(writable_roots: &[&Path]) -> SandboxPolicy {
        SandboxPolicy::WorkspaceWrite {
            writable_roots: writable_roots.iter().filter_map(AbsolutePathBuf::new).collect(),
            read_only_access: ReadOnlyAccess::FullAccess,
            network_access: false,
            exclude_tmpdir_env_var: false,
            exclude_slash_tmp: true,
        }
    }

    #[test]
    fn policies_that_confine_nothing_need_no_sandbox() {
        let surroundings = Surroundings { cwd: Path::new("/"), tmpdir: None };
        let external = SandboxPolicy::ExternalSandbox { network_access: NetworkAccess::Restricted };
        assert_eq!(Sandbox::new(&SandboxPolicy::DangerFullAccess, surroundings), None);
        assert_eq!(Sandbox::new(&external, surroundings), None);
        assert!(network_disabled(&external) && !network_disabled(&SandboxPolicy::DangerFullAccess));
    }

    #[test]
    fn a_workspace_has_roots_and_protected_names() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (cwd, other, tmp) = (base.join("cwd"), base.join("other"), base.join("tmp"));
        for path in [&cwd.join(".agents"), &other.join(".codex"), &tmp, &base.join("repo/worktrees/x")] {
            fs::create_dir_all(path).unwrap();
        }
        fs::write(cwd.join(".git"), "gitdir: ../repo/worktrees/x\n").unwrap();
        let surroundings = Surroundings { cwd: &cwd, tmpdir: Some(&tmp) };
        let sandbox = Sandbox::new(&workspace(&[&other, &base.join("missing"), &cwd]), surroundings).unwrap();
        let root = |path: &Path, protected: Vec<PathBuf>, absent: Vec<PathBuf>| WritableRoot {
            path: path.to_owned(),
            protected,
            absent,
        };
        let git = base.join("repo/worktrees/x");
        assert_eq!(
            sandbox.writable,
            [
                root(&cwd, vec![cwd.join(".agents"), cwd.join(".git"), git], vec![cwd.join(".codex")]),
                root(&other, vec![other.join(".codex")], vec![]),
                root(&tmp, vec![], vec![]),
            ]
        );
        for (path, expected) in [
            (cwd.join("new/file"), true),
            (cwd.join(".git"), false),
            (cwd.join(".codex/config.toml"), false),
            (cwd.join("sub/.git/x"), true),
            (other.join("x"), true),
            (other.join(".codex/x"), false),
            (base.join("x"), false),
            (cwd.join("../x"), false),
            (PathBuf::from("/etc/passwd"), false),
        ] {
            assert_eq!(sandbox.can_write(&path), expected, "{}", path.display());
        }
    }

    #[test]
    fn more_can_be_granted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let policy = SandboxPolicy::ReadOnly {
            access: ReadOnlyAccess::Restricted { include_platform_defaults: false, readable_roots: vec![] },
            network_access: false,
        };
        let mut sandbox = Sandbox::new(&policy, Surroundings { cwd: &path, tmpdir: None }).unwrap();
        assert!(!sandbox.can_write(&path.join("x")) && sandbox.network_disabled());
        sandbox.grant_write(&path);
        sandbox.grant_read(Path::new("/etc"));
        sandbox.grant_network();
        assert!(sandbox.can_write(&path.join("x")) && !sandbox.network_disabled());
        assert_eq!(sandbox.readable, Some(vec!["/etc".into()]));
    }
}
