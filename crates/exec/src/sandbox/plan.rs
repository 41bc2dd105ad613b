//! Makes the sandbox of a policy.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use loomd_protocol::{NetworkAccess, ReadOnlyAccess, SandboxPolicy};

use super::conceal::ConcealedFolder;
use super::layers::Layer;
use super::roots::{Grant, Root, Roots};
use super::{Exception, Mechanism, ReadableRoot, ResourceLimits, Sandbox, WritableRoot};

/// The paths that a policy or profile is applied to.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The folder that "workspace" means.
    pub cwd: &'a Path,
    /// `$TMPDIR`, if set.
    pub tmpdir: Option<&'a Path>,
    /// Our home: commands see it read-only, without the credentials in it.
    pub home: Option<&'a Path>,
    /// What the paths of policies resolved to when the thread first used them. `None`: they are resolved now.
    pub roots: Option<&'a Roots>,
    /// Projects whose configuration is loaded. Commands must not write it, even where it does not exist yet.
    pub trusted: &'a [PathBuf],
}

impl<'a> Surroundings<'a> {
    pub fn new(cwd: &'a Path) -> Self {
        Self { cwd, tmpdir: None, home: None, roots: None, trusted: &[] }
    }

    pub(super) fn find(&self, path: &Path) -> Grant {
        self.roots.map_or_else(|| Grant::new(path), |roots| roots.find(path))
    }
}

/// Folders that programs need to run at all; added when not everything is readable.
pub(super) const PLATFORM: &[&str] =
    &["/bin", "/sbin", "/usr", "/etc", "/lib", "/lib64", "/nix/store", "/run/current-system/sw"];
/// Names that configure tools and agents; commands must not change them.
const PROTECTED: &[&str] = &[".git", ".agents", ".codex"];
/// The name that is protected in some folders even before it exists.
const PROTECTED_ABSENT: &str = ".codex";

/// Files of our home that hold credentials.
pub(super) const CREDENTIALS: &[&str] = &["auth.json", ".credentials.json"];

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
        let mut sandbox = Self::new_read_only(network);
        // Paths that existed when they were first used come first: a command may have created the others in them since.
        let mut grants: Vec<_> = roots.into_iter().map(|root| surroundings.find(root)).collect();
        grants.sort_by_key(|grant| grant.root.is_none());
        for grant in &grants {
            sandbox.grant_write(grant);
        }
        if let Some(roots) = readable(access) {
            sandbox.readable = Some(Vec::new());
            for root in roots {
                sandbox.grant_read(&surroundings.find(&root));
            }
        }
        sandbox.protect_configuration(surroundings);
        sandbox.conceal(surroundings.home);
        Some(sandbox)
    }

    /// A sandbox in which everything can be read and nothing written.
    pub(super) fn new_read_only(network: bool) -> Self {
        Self {
            readable: None,
            writable: Vec::new(),
            exceptions: Vec::new(),
            concealed: Vec::new(),
            network,
            unix_sockets: false,
            loopback_ports: Vec::new(),
            limits: ResourceLimits::default(),
            mechanism: Mechanism::default(),
            landlock: true,
        }
    }

    /// Keeps commands from writing configuration that the next start would read: in the workspace, in other work trees
    /// that are roots, and in trusted projects.
    pub(super) fn protect_configuration(&mut self, surroundings: Surroundings) {
        let mut folders: Vec<PathBuf> =
            surroundings.find(surroundings.cwd).root.map(|root| root.path).into_iter().collect();
        let roots = self.writable.iter().map(|root| &root.path).filter(|root| **root != *Path::new("/"));
        folders.extend(roots.clone().filter(|root| is_there(&root.join(".git"))).cloned());
        let inside = |project: &&PathBuf| roots.clone().any(|root| project.starts_with(root));
        folders.extend(surroundings.trusted.iter().filter(inside).filter_map(|project| project.canonicalize().ok()));
        for folder in folders {
            let Some(Layer::Writable(WritableRoot { path: around, .. })) = self.innermost(&folder) else { continue };
            let around = around.clone();
            let Some(root) = self.writable.iter_mut().find(|root| root.path == around) else { continue };
            let path = folder.join(PROTECTED_ABSENT);
            let kept = if is_there(&path) { &mut root.protected } else { &mut root.absent };
            if around != Path::new("/") && !kept.contains(&path) {
                kept.push(path);
            }
        }
    }

    /// Hides credentials from commands and makes our home read-only, unless they may write to everything or cannot see
    /// it.
    pub(super) fn conceal(&mut self, home: Option<&Path>) {
        let everything = self.writable.iter().any(|root| root.path == Path::new("/"));
        let Some(home) = home.and_then(|home| home.canonicalize().ok()).filter(|_| !everything) else { return };
        for name in CREDENTIALS {
            let path = home.join(name);
            // The file itself may be kept elsewhere.
            if let Some(Root { path, identity, .. }) = Root::resolve(&path).filter(|real| real.path != path)
                && self.can_read(&path)
            {
                match (path.parent(), path.file_name().and_then(|name| name.to_str())) {
                    (Some(folder), Some(name)) if !self.can_write(folder) => {
                        self.concealed.push(ConcealedFolder { folder: folder.into(), names: vec![name.into()] });
                    }
                    _ => self.exceptions.push(Exception { path, identity, readable: false }),
                }
            }
        }
        if self.can_read(&home) {
            let names = CREDENTIALS.iter().map(ToString::to_string).collect();
            self.concealed.push(ConcealedFolder { folder: home, names });
        }
    }

    /// Lets commands write to a folder or file. Nothing is granted for a path that does not exist, or that a command
    /// may have created since it was named.
    pub fn grant_write(&mut self, grant: &Grant) {
        let Some(Root { path, identity, .. }) = self.resolve(grant) else { return };
        self.exceptions.retain(|exception| exception.path != path);
        if self.writable.iter().any(|root| root.path == path) {
            return;
        }
        let protected = protected(&path);
        self.writable.push(WritableRoot { path, identity, protected, absent: Vec::new() });
        // Outer roots first, so that an inner one takes precedence.
        self.writable.sort_by_key(|root| root.path.components().count());
    }

    /// Lets commands read a folder or file.
    pub fn grant_read(&mut self, grant: &Grant) {
        let Some(Root { path, identity, .. }) = self.resolve(grant) else { return };
        if matches!(self.innermost(&path), Some(Layer::Closed(_))) {
            self.exceptions.retain(|exception| exception.path != path);
            self.exceptions.push(Exception { path: path.clone(), identity, readable: true });
        }
        if let Some(readable) = &mut self.readable {
            readable.push(ReadableRoot { name: grant.path.clone(), path, identity });
        }
    }

    fn resolve(&self, grant: &Grant) -> Option<Root> {
        grant.root.clone().or_else(|| Root::resolve(&grant.path).filter(|_| !self.can_relink(&grant.path)))
    }

    /// Whether a command could change what a path resolves to.
    fn can_relink(&self, path: &Path) -> bool {
        let writable = |path: &Path| matches!(self.innermost(path), Some(Layer::Writable(_)));
        path.ancestors().skip(1).any(|folder| writable(folder) || real(folder).is_some_and(|real| writable(&real)))
    }

    /// Sets the resource limits.
    pub fn with_limits(mut self, limits: ResourceLimits) -> Self {
        self.limits = limits;
        self
    }

    pub fn grant_network(&mut self) {
        self.network = true;
    }

    /// Denies the network, whatever was granted.
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

    /// Like [`Self::can_write`], for a path without links, which is not resolved again.
    pub fn can_write_resolved(&self, path: &Path) -> bool {
        match self.innermost(path) {
            Some(Layer::Writable(root)) => {
                !root.protected.iter().chain(&root.absent).any(|kept| path.starts_with(kept))
            }
            _ => false,
        }
    }

    /// Whether a command could read this path, which need not exist.
    pub fn can_read(&self, path: &Path) -> bool {
        let Some(path) = real(path) else { return false };
        if self.concealed.iter().any(|concealed| concealed.conceals(&path)) {
            return false;
        }
        match (self.innermost(&path), &self.readable) {
            (Some(Layer::Closed(_)), _) => false,
            (Some(_), _) | (None, None) => true,
            (None, Some(roots)) => roots.iter().any(|root| path.starts_with(&root.path)),
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

/// The protected paths of a writable folder, with the targets of links and the actual repository.
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

/// The most bytes of a `.git` that is a file, which contains one path.
const MAX_LINK_BYTES: u64 = 64 << 10;

/// The path of the repository in a `.git` that is a file.
fn git_folder(path: &Path) -> Option<PathBuf> {
    let text = loomd_regular::read_to_string(path, MAX_LINK_BYTES).ok()?;
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
    use std::fs;

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
    fn full_access_and_external_sandbox_policies_have_no_sandbox() {
        let surroundings = Surroundings::new(Path::new("/"));
        let external = SandboxPolicy::ExternalSandbox { network_access: NetworkAccess::Restricted };
        assert_eq!(Sandbox::new(&SandboxPolicy::DangerFullAccess, surroundings), None);
        assert_eq!(Sandbox::new(&external, surroundings), None);
        assert!(network_disabled(&external) && !network_disabled(&SandboxPolicy::DangerFullAccess));
    }

    #[test]
    fn a_workspace_policy_has_writable_roots_with_protected_names() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (cwd, other, tmp) = (base.join("cwd"), base.join("other"), base.join("tmp"));
        for path in [&cwd.join(".agents"), &other.join(".codex"), &tmp, &base.join("repo/worktrees/x")] {
            fs::create_dir_all(path).unwrap();
        }
        fs::write(cwd.join(".git"), "gitdir: ../repo/worktrees/x\n").unwrap();
        let surroundings = Surroundings { tmpdir: Some(&tmp), ..Surroundings::new(&cwd) };
        let sandbox = Sandbox::new(&workspace(&[&other, &base.join("missing"), &cwd]), surroundings).unwrap();
        let root = |path: &Path, protected: Vec<PathBuf>, absent: Vec<PathBuf>| WritableRoot {
            path: path.to_owned(),
            identity: Root::resolve(path).unwrap().identity,
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
    fn configuration_of_work_trees_and_trusted_projects_is_protected_before_it_exists() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let [cwd, tree, plain, trusted] = ["cwd", "tree", "plain", "plain/trusted"].map(|name| base.join(name));
        for path in [&cwd, &tree.join(".git"), &plain, &trusted] {
            fs::create_dir_all(path).unwrap();
        }
        let projects = [trusted.clone(), base.join("plain/missing"), base.clone()];
        let surroundings = Surroundings { trusted: &projects, ..Surroundings::new(&cwd) };
        let sandbox = Sandbox::new(&workspace(&[&tree, &plain]), surroundings).unwrap();
        let absent: Vec<_> = sandbox.writable.iter().flat_map(|root| &root.absent).collect();
        assert_eq!(absent, [&cwd.join(".codex"), &tree.join(".codex"), &trusted.join(".codex")]);
        assert!(!sandbox.can_write(&trusted.join(".codex/config.toml")) && sandbox.can_write(&plain.join(".codex/x")));
    }

    #[test]
    fn a_grant_adds_readable_and_writable_roots() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let policy = SandboxPolicy::ReadOnly {
            access: ReadOnlyAccess::Restricted { include_platform_defaults: false, readable_roots: vec![] },
            network_access: false,
        };
        let mut sandbox = Sandbox::new(&policy, Surroundings::new(&path)).unwrap();
        assert!(!sandbox.can_write(&path.join("x")) && sandbox.network_disabled());
        sandbox.grant_write(&Grant::new(&path));
        sandbox.grant_read(&Grant::new("/etc"));
        sandbox.grant_network();
        assert!(sandbox.can_write(&path.join("x")) && !sandbox.network_disabled());
        let readable: Vec<_> = sandbox.readable.iter().flatten().map(|root| root.path.as_path()).collect();
        assert_eq!(readable, [Path::new("/etc")]);
    }
}
