//! Copies a mount, file by file. The source is read relative to open directories without following links, so that
//! what is copied is in the mount, whatever another process does with it meanwhile.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use super::WorkspaceError;
use super::mount::{CheckedMount, MountPreview};

/// Files and folders that are looked at in a mount.
const MAX_ENTRIES: u64 = 200_000;

/// Depth of folders, which is also the number of directories that are open at a time.
const MAX_DEPTH: usize = 64;

/// Names in a preview.
const PREVIEW: usize = 20;

const CHUNK: usize = 64 * 1024;

/// Copies what a mount selects into `workspace`. `left` is what remains of the budget of all mounts, `total`.
pub(super) fn copy_mount(
    mount: &CheckedMount,
    workspace: &Path,
    left: u64,
    total: u64,
) -> Result<MountPreview, WorkspaceError> {
    let preview = MountPreview {
        host_path: mount.host_path.clone(),
        mount_path: mount.mount_path.clone(),
        files: 0,
        bytes: 0,
        skipped: 0,
        entries: Vec::new(),
    };
    let destination = workspace.join(&mount.mount_path);
    let mut copier = Copier { mount, destination, left, total, entries: 0, preview };
    match open_real(&mount.host_path)? {
        Source::Folder(folder) => {
            create_folders(&copier.destination).map_err(|source| copier.failed(Path::new(""), source))?;
            copier.copy_folder(folder, Path::new(""), 0)?;
        }
        Source::File(file) => {
            let name = mount.host_path.file_name().map(PathBuf::from).unwrap_or_default();
            if mount.wants(&name) {
                copier.copy_file(file, Path::new(""))?;
                copier.preview.entries = vec![name];
            }
        }
    }
    Ok(copier.preview)
}

enum Source {
    Folder(OwnedFd),
    File(File),
}

/// Opens a real path from the root on without following links. One that has become a link since is refused.
fn open_real(path: &Path) -> Result<Source, WorkspaceError> {
    let failed = |error: Errno| match error {
        Errno::LOOP | Errno::NOTDIR => {
            let reason = "the path was replaced while it was mounted";
            WorkspaceError::Security { path: path.to_owned(), reason }
        }
        error => WorkspaceError::Io { path: path.to_owned(), source: error.into() },
    };
    let mut folder = rustix::fs::open("/", folder_flags(), Mode::empty()).map_err(failed)?;
    let names: Vec<_> = path.iter().skip(1).collect();
    let Some((last, parents)) = names.split_last() else { return Ok(Source::Folder(folder)) };
    for name in parents {
        folder = openat(&folder, *name, folder_flags(), Mode::empty()).map_err(failed)?;
    }
    let opened = openat(&folder, *last, file_flags(), Mode::empty()).map_err(failed)?;
    match FileType::from_raw_mode(fstat(&opened).map_err(failed)?.st_mode) {
        FileType::Directory => Ok(Source::Folder(opened)),
        FileType::RegularFile => Ok(Source::File(opened.into())),
        _ => {
            let reason = "the path is neither a folder nor a regular file";
            Err(WorkspaceError::Security { path: path.to_owned(), reason })
        }
    }
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// Does not block on a FIFO.
fn file_flags() -> OFlags {
    OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}

struct Copier<'a> {
    mount: &'a CheckedMount,
    destination: PathBuf,
    left: u64,
    total: u64,
    entries: u64,
    preview: MountPreview,
}

impl Copier<'_> {
    /// `path` is the folder's path in the mount.
    fn copy_folder(&mut self, folder: OwnedFd, path: &Path, depth: usize) -> Result<(), WorkspaceError> {
        if depth > MAX_DEPTH {
            return Err(self.too_large(path, "folders are too deep"));
        }
        for (name, kind) in self.names(folder.as_fd(), path)? {
            let path = path.join(OsStr::from_bytes(name.to_bytes()));
            if self.mount.leaves_out(&path) {
                continue;
            }
            match kind {
                FileType::Directory => match openat(&folder, &name, folder_flags(), Mode::empty()) {
                    Ok(inner) => self.copy_folder(inner, &path, depth + 1)?,
                    Err(error) => self.skip(&path, error)?,
                },
                // Opened only if it may be a regular file: opening some devices has effects.
                FileType::RegularFile | FileType::Unknown if self.mount.wants(&path) => {
                    match openat(&folder, &name, file_flags(), Mode::empty()) {
                        Ok(opened) => self.copy_opened(opened, &path, depth)?,
                        Err(error) => self.skip(&path, error)?,
                    }
                }
                FileType::RegularFile => {}
                _ => self.preview.skipped += 1,
            }
        }
        Ok(())
    }

    /// Copies what was opened as a file; the file system may not have told its type before.
    fn copy_opened(&mut self, opened: OwnedFd, path: &Path, depth: usize) -> Result<(), WorkspaceError> {
        let stat = fstat(&opened).map_err(|error| self.failed(path, error.into()))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => self.copy_file(opened.into(), path),
            FileType::Directory => self.copy_folder(opened, path, depth + 1),
            _ => {
                self.preview.skipped += 1;
                Ok(())
            }
        }
    }

    /// The entries of a folder in order.
    fn names(&mut self, folder: BorrowedFd<'_>, path: &Path) -> Result<Vec<(CString, FileType)>, WorkspaceError> {
        let dir = Dir::read_from(folder).map_err(|error| self.failed(path, error.into()))?;
        let mut names = Vec::new();
        for entry in dir {
            let entry = entry.map_err(|error| self.failed(path, error.into()))?;
            if is_dots(entry.file_name()) {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(self.too_large(path, "there are too many files"));
            }
            names.push((entry.file_name().to_owned(), entry.file_type()));
        }
        names.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        Ok(names)
    }

    fn copy_file(&mut self, mut source: File, path: &Path) -> Result<(), WorkspaceError> {
        let destination =
            if path.as_os_str().is_empty() { self.destination.clone() } else { self.destination.join(path) };
        if !self.copy_bytes(&mut source, &destination).map_err(|error| self.failed(path, error))? {
            return Err(self.over_budget(path));
        }
        self.preview.files += 1;
        if self.preview.entries.len() < PREVIEW {
            self.preview.entries.push(path.to_owned());
        }
        Ok(())
    }

    /// Returns false once a budget is exceeded.
    fn copy_bytes(&mut self, source: &mut File, destination: &Path) -> io::Result<bool> {
        if let Some(parent) = destination.parent() {
            create_folders(parent)?;
        }
        let executable = source.metadata()?.permissions().mode() & 0o100;
        let mode = 0o600 | executable;
        let mut copy = OpenOptions::new().write(true).create_new(true).mode(mode).open(destination)?;
        let mut chunk = vec![0; CHUNK];
        loop {
            let count = match source.read(&mut chunk) {
                Ok(0) => return Ok(true),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.preview.bytes += count as u64;
            if self.preview.bytes > self.left || self.mount.max_bytes.is_some_and(|max| self.preview.bytes > max) {
                return Ok(false);
            }
            copy.write_all(&chunk[..count])?;
        }
    }

    /// Passes over an entry that is a link, or has become one or vanished since it was listed.
    fn skip(&mut self, path: &Path, error: Errno) -> Result<(), WorkspaceError> {
        match error {
            Errno::LOOP | Errno::NOTDIR | Errno::NXIO | Errno::NODEV => self.preview.skipped += 1,
            Errno::NOENT => {}
            error => return Err(self.failed(path, error.into())),
        }
        Ok(())
    }

    fn over_budget(&self, path: &Path) -> WorkspaceError {
        let of_mount = self.mount.max_bytes.filter(|max| self.preview.bytes > *max);
        WorkspaceError::BudgetExceeded { path: self.host_path(path), limit: of_mount.unwrap_or(self.total) }
    }

    fn too_large(&self, path: &Path, reason: &'static str) -> WorkspaceError {
        WorkspaceError::TooLarge { path: self.host_path(path), reason }
    }

    fn failed(&self, path: &Path, source: io::Error) -> WorkspaceError {
        WorkspaceError::Io { path: self.host_path(path), source }
    }

    fn host_path(&self, path: &Path) -> PathBuf {
        if path.as_os_str().is_empty() { self.mount.host_path.clone() } else { self.mount.host_path.join(path) }
    }
}

fn create_folders(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}
