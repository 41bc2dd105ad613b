//! [`Workspace`]: copies of host files in a temporary folder, for the server to work in.
//!
//! Files are copied through directories that are held open and never through links, so neither a link nor a folder
//! that is replaced meanwhile leads out of a mount. The copy stays within byte budgets.

mod copy;
mod mount;

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tempfile::TempDir;
use thiserror::Error;

pub use mount::{HostMount, MountPreview};

use crate::hex::hex;
use crate::prompt::Section;
use mount::CheckedMount;

/// Bytes of all mounts, unless set.
const DEFAULT_MAX_BYTES: u64 = 256 * 1024 * 1024;

/// A temporary folder with copies of host files. Removed when dropped.
#[derive(Debug)]
pub struct Workspace {
    folder: TempDir,
    path: PathBuf,
    previews: Vec<MountPreview>,
    max_bytes: u64,
    fingerprint: String,
}

impl Workspace {
    pub fn builder() -> WorkspaceBuilder {
        WorkspaceBuilder { mounts: Vec::new(), allowed_roots: Vec::new(), max_bytes: DEFAULT_MAX_BYTES }
    }

    /// The real path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was copied, mount by mount.
    pub fn previews(&self) -> &[MountPreview] {
        &self.previews
    }

    /// A hash of the mounts and budgets, whatever their order. Workspaces with the same one have the same setup.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// A section for a prompt that describes the mounts.
    pub fn section(&self) -> Section {
        let mut text = String::from("The working directory has copies of these files; changes stay in the copies.\n");
        for preview in &self.previews {
            let (path, host) = (preview.mount_path.display(), preview.host_path.display());
            _ = write!(text, "\n- `{path}`: {} files, {} bytes, from `{host}`", preview.files, preview.bytes);
            if preview.skipped > 0 {
                _ = write!(text, "; {} links and special files are left out", preview.skipped);
            }
        }
        _ = write!(text, "\n\nThe copies have at most {} bytes.", self.max_bytes);
        Section::literal("workspace", "Workspace", text)
    }

    /// Removes the folder, which dropping does, too, but without an error.
    pub async fn close(self) -> io::Result<()> {
        let folder = self.folder;
        tokio::task::spawn_blocking(move || folder.close()).await.map_err(io::Error::other)?
    }
}

/// Collects mounts and bounds of a [`Workspace`].
#[derive(Clone, Debug)]
pub struct WorkspaceBuilder {
    mounts: Vec<HostMount>,
    allowed_roots: Vec<PathBuf>,
    max_bytes: u64,
}

impl WorkspaceBuilder {
    pub fn mount(mut self, mount: HostMount) -> Self {
        self.mounts.push(mount);
        self
    }

    /// Adds a folder that mounts may be in. Without any, they may be anywhere.
    pub fn allowed_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.allowed_roots.push(root.into());
        self
    }

    /// Bytes of all mounts together; 256 MiB by default.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Copies the files, on a blocking thread.
    pub async fn build(self) -> Result<Workspace, WorkspaceError> {
        tokio::task::spawn_blocking(move || self.build_blocking())
            .await
            .map_err(|error| WorkspaceError::Io { path: PathBuf::new(), source: io::Error::other(error) })?
    }

    /// Copies the files on the calling thread.
    pub fn build_blocking(self) -> Result<Workspace, WorkspaceError> {
        let roots: Vec<_> = self.allowed_roots.iter().map(|root| canonical(root)).collect::<Result<_, _>>()?;
        let mut mounts: Vec<_> =
            self.mounts.iter().map(|mount| CheckedMount::new(mount, &roots)).collect::<Result<_, _>>()?;
        mount::check_overlap(&mounts)?;
        // The result does not depend on the order in which mounts were added.
        mounts.sort_by(|one, other| one.mount_path.cmp(&other.mount_path));
        let failed = |source| WorkspaceError::Io { path: std::env::temp_dir(), source };
        let folder = TempDir::with_prefix("loomd-workspace-").map_err(failed)?;
        let path = folder.path().canonicalize().map_err(failed)?;
        let mut left = self.max_bytes;
        let mut previews = Vec::new();
        for mount in &mounts {
            let preview = copy::copy_mount(mount, &path, left, self.max_bytes)?;
            left -= preview.bytes;
            previews.push(preview);
        }
        let fingerprint = fingerprint(&mounts, self.max_bytes);
        Ok(Workspace { folder, path, previews, max_bytes: self.max_bytes, fingerprint })
    }
}

/// Why there is no workspace.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The files are larger than they may be.
    #[error("{} exceeds the budget of {limit} bytes", path.display())]
    BudgetExceeded { path: PathBuf, limit: u64 },
    /// More files, or deeper folders, than a workspace may have.
    #[error("{} has too many files or folders: {reason}", path.display())]
    TooLarge { path: PathBuf, reason: &'static str },
    /// A mount is not allowed.
    #[error("{}: {reason}", path.display())]
    Security { path: PathBuf, reason: &'static str },
    #[error("invalid glob `{glob}`: {reason}")]
    BadGlob { glob: String, reason: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn canonical(path: &Path) -> Result<PathBuf, WorkspaceError> {
    if !path.is_absolute() {
        return Err(WorkspaceError::Security { path: path.to_owned(), reason: "the path must be absolute" });
    }
    path.canonicalize().map_err(|source| WorkspaceError::Io { path: path.to_owned(), source })
}

/// A hash of the sorted mounts and of the budget. Every part has its length before it, so that parts cannot be
/// mistaken for each other.
fn fingerprint(sorted: &[CheckedMount], max_bytes: u64) -> String {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    add(&max_bytes.to_be_bytes());
    for mount in sorted {
        add(mount.host_path.as_os_str().as_encoded_bytes());
        add(mount.mount_path.as_os_str().as_encoded_bytes());
        add(&mount.max_bytes.unwrap_or(u64::MAX).to_be_bytes());
        for globs in [&mount.include, &mount.exclude] {
            add(&(globs.len() as u64).to_be_bytes());
            globs.iter().for_each(|glob| add(glob.as_bytes()));
        }
    }
    hex(&hash.finalize())
}
