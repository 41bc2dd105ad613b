//! A name in a folder that is held open. Changes are made by this process, which no sandbox holds back, while
//! commands in a sandbox may be running: were one of them to put a link in the place of a folder that was looked at,
//! we would write where it must not. So the folder is opened component by component, links are refused, and
//! everything is done relative to its descriptor.

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
    /// The place of an absolute path without `..` and without links in its folders.
    pub fn of(path: &Path) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
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

    /// Another name in the same folder.
    pub fn sibling<'a>(&'a self, name: &'a str) -> NameAt<'a> {
        NameAt { folder: self.folder.as_fd(), name: name.as_ref() }
    }

    fn name(&self) -> NameAt<'_> {
        NameAt { folder: self.folder.as_fd(), name: &self.name }
    }

    /// What has the name, a link as a link; `None` when nothing has it.
    pub fn existing(&self) -> io::Result<Option<fs::Metadata>> {
        match self.name().open(OFlags::PATH, Mode::empty()) {
            Ok(file) => Ok(Some(file.metadata()?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens what has the name; fails if that is a link.
    pub fn open(&self, flags: OFlags, mode: Mode) -> io::Result<fs::File> {
        self.name().open(flags, mode)
    }

    pub fn unlink(&self, flags: AtFlags) -> io::Result<()> {
        self.name().unlink(flags)
    }

    pub fn create_dir(&self) -> io::Result<()> {
        Ok(mkdirat(&self.folder, &self.name, Mode::from_raw_mode(NEW_FOLDER))?)
    }

    /// Gives this place's name to the file that is called `sibling` so far, and removes what had it.
    pub fn take_name_of(&self, sibling: &str) -> io::Result<()> {
        Ok(renameat(&self.folder, sibling, &self.folder, &self.name)?)
    }
}

/// A name in an open folder.
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

/// What a program asks for when it makes a folder; the umask takes from it.
const NEW_FOLDER: u32 = 0o777;
