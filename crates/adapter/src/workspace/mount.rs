//! [`HostMount`]: what to copy from the host, where to, and how much.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::{WorkspaceError, canonical};

/// A file or folder of the host that is copied into a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostMount {
    host_path: PathBuf,
    mount_path: Option<PathBuf>,
    include: Vec<String>,
    exclude: Vec<String>,
    max_bytes: Option<u64>,
}

impl HostMount {
    /// An absolute path. It is copied to its last name, unless [`at`](Self::at) is set.
    pub fn new(host_path: impl Into<PathBuf>) -> Self {
        Self {
            host_path: host_path.into(),
            mount_path: None,
            include: Vec::new(),
            exclude: Vec::new(),
            max_bytes: None,
        }
    }

    /// Where in the workspace, as a relative path without `..`.
    pub fn at(mut self, mount_path: impl Into<PathBuf>) -> Self {
        self.mount_path = Some(mount_path.into());
        self
    }

    /// Copies only files whose path in the mount matches this glob, or another one that is included. `*` does not
    /// match `/`.
    pub fn include(mut self, glob: impl Into<String>) -> Self {
        self.include.push(glob.into());
        self
    }

    /// Leaves out files and folders whose path in the mount matches.
    pub fn exclude(mut self, glob: impl Into<String>) -> Self {
        self.exclude.push(glob.into());
        self
    }

    /// Bytes of this mount.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }
}

/// What was copied for a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MountPreview {
    /// The real path on the host.
    pub host_path: PathBuf,
    pub mount_path: PathBuf,
    pub files: u64,
    pub bytes: u64,
    /// Links, sockets and other files that are not regular, which are not copied.
    pub skipped: u64,
    /// The first copied files, by their path in the mount.
    pub entries: Vec<PathBuf>,
}

/// A mount whose paths and globs are valid.
pub(super) struct CheckedMount {
    /// The real path.
    pub(super) host_path: PathBuf,
    pub(super) mount_path: PathBuf,
    /// Sorted, for the fingerprint.
    pub(super) include: Vec<String>,
    pub(super) exclude: Vec<String>,
    pub(super) max_bytes: Option<u64>,
    included: GlobSet,
    excluded: GlobSet,
}

impl CheckedMount {
    /// `roots` are real paths.
    pub(super) fn new(mount: &HostMount, roots: &[PathBuf]) -> Result<Self, WorkspaceError> {
        let host_path = canonical(&mount.host_path)?;
        if !roots.is_empty() && !roots.iter().any(|root| host_path.starts_with(root)) {
            let reason = "the path is in none of the allowed roots";
            return Err(WorkspaceError::Security { path: mount.host_path.clone(), reason });
        }
        let mount_path = match &mount.mount_path {
            Some(path) => path.clone(),
            None => host_path.file_name().map(PathBuf::from).unwrap_or_default(),
        };
        let mount_path = relative(&mount_path)?;
        let sorted = |globs: &[String]| {
            let mut globs = globs.to_vec();
            globs.sort_unstable();
            globs.dedup();
            globs
        };
        let (include, exclude) = (sorted(&mount.include), sorted(&mount.exclude));
        let (included, excluded) = (compile(&include)?, compile(&exclude)?);
        Ok(Self { host_path, mount_path, include, exclude, max_bytes: mount.max_bytes, included, excluded })
    }

    /// Whether a file at this path in the mount is copied.
    pub(super) fn wants(&self, path: &Path) -> bool {
        (self.include.is_empty() || self.included.is_match(path)) && !self.leaves_out(path)
    }

    /// Whether a file or folder at this path is left out, with all that is in it.
    pub(super) fn leaves_out(&self, path: &Path) -> bool {
        self.excluded.is_match(path)
    }
}

/// A path of plain names.
fn relative(path: &Path) -> Result<PathBuf, WorkspaceError> {
    let refused = |reason| WorkspaceError::Security { path: path.to_owned(), reason };
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir => return Err(refused("a mount path must not contain `..`")),
            Component::RootDir | Component::Prefix(_) => return Err(refused("a mount path must be relative")),
        }
    }
    if plain.as_os_str().is_empty() {
        return Err(refused("a mount path must not be empty"));
    }
    Ok(plain)
}

/// Refuses mounts in each other, whose result would depend on their order.
pub(super) fn check_overlap(mounts: &[CheckedMount]) -> Result<(), WorkspaceError> {
    for (index, mount) in mounts.iter().enumerate() {
        let overlaps = |other: &&CheckedMount| {
            mount.mount_path.starts_with(&other.mount_path) || other.mount_path.starts_with(&mount.mount_path)
        };
        if let Some(other) = mounts[..index].iter().find(overlaps) {
            let path = other.mount_path.clone();
            return Err(WorkspaceError::Security { path, reason: "two mounts have overlapping mount paths" });
        }
    }
    Ok(())
}

fn compile(globs: &[String]) -> Result<GlobSet, WorkspaceError> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let bad = |error: globset::Error| WorkspaceError::BadGlob { glob: glob.clone(), reason: error.to_string() };
        set.add(GlobBuilder::new(glob).literal_separator(true).build().map_err(bad)?);
    }
    set.build().map_err(|error| WorkspaceError::BadGlob { glob: globs.join(" "), reason: error.to_string() })
}
