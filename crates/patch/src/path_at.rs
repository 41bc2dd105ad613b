//! [`PathAt`]: a name in a directory that is held open. Patches are applied by this process, outside of any sandbox,
//! while sandboxed commands may run: one of them could replace a checked directory by a link. So the directory is
//! opened component by component, links are refused, and all operations are relative to its descriptor.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

pub(crate) struct PathAt {
    folder: OwnedFd,
    name: OsString,
}

impl PathAt {
    /// Opens the directory of an absolute path that has no `..` and no links in its directories.
    pub fn of(path: &Path) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let flags = LOOK | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = openat(CWD, c"/", flags, Mode::empty())?;
        for component in parent.components() {
            match component {
                Component::RootDir => {}
                Component::Normal(name) => folder = openat(&folder, name, flags, Mode::empty())?,
                Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                    return Err(io::ErrorKind::InvalidFilename.into());
                }
            }
        }
        Ok(Self { folder, name: name.to_owned() })
    }

    /// Another name in the same directory.
    pub fn sibling<'a>(&'a self, name: &'a str) -> NameAt<'a> {
        NameAt { folder: self.folder.as_fd(), name: name.as_ref() }
    }

    fn name(&self) -> NameAt<'_> {
        NameAt { folder: self.folder.as_fd(), name: &self.name }
    }

    /// The metadata of the entry, not following a link; `None` if there is none.
    pub fn existing(&self) -> io::Result<Option<fs::Metadata>> {
        match self.name().open(LOOK, Mode::empty()) {
            Ok(file) => Ok(Some(file.metadata()?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the entry; fails if it is a link.
    pub fn open(&self, flags: OFlags, mode: Mode) -> io::Result<fs::File> {
        self.name().open(flags, mode)
    }

    pub fn unlink(&self, flags: AtFlags) -> io::Result<()> {
        self.name().unlink(flags)
    }

    pub fn create_dir(&self) -> io::Result<()> {
        Ok(mkdirat(&self.folder, &self.name, NEW_FOLDER)?)
    }

    /// Renames `sibling` to this name, replacing the entry.
    pub fn take_name_of(&self, sibling: &str) -> io::Result<()> {
        Ok(renameat(&self.folder, sibling, &self.folder, &self.name)?)
    }
}

/// A name in an open directory.
pub(crate) struct NameAt<'a> {
    folder: BorrowedFd<'a>,
    name: &'a OsStr,
}

impl NameAt<'_> {
    pub fn open(&self, flags: OFlags, mode: Mode) -> io::Result<fs::File> {
        let opened = openat(self.folder, self.name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode);
        match opened {
            Err(Errno::NXIO) => Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file")),
            opened => Ok(opened?.into()),
        }
    }

    pub fn unlink(&self, flags: AtFlags) -> io::Result<()> {
        Ok(unlinkat(self.folder, self.name, flags)?)
    }
}

/// The usual mode for a new directory, from which the umask takes bits.
const NEW_FOLDER: Mode = Mode::from_raw_mode(0o777);

/// Opens an entry without access to its content: a directory to go on from, or anything, a link too, for its metadata.
#[cfg(target_os = "linux")]
const LOOK: OFlags = OFlags::PATH;
/// `O_SYMLINK`, which opens a link itself, and `O_NONBLOCK`, because a FIFO is opened, too.
#[cfg(not(target_os = "linux"))]
const LOOK: OFlags = OFlags::from_bits_retain(0x20_0000).union(OFlags::NONBLOCK);
