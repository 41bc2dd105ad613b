//! Files in memory, with injected failures.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use loomd_patch::{File, Files, FilesMut};

use crate::CWD;

#[derive(Debug, Default)]
pub struct MemoryFiles {
    files: RefCell<BTreeMap<PathBuf, File>>,
    folders: RefCell<BTreeSet<PathBuf>>,
    /// Links from one path to another.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// Paths whose changes fail.
    pub broken: BTreeSet<PathBuf>,
}

impl MemoryFiles {
    /// Files in the working folder, by name and content.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let memory = Self::default();
        memory.folders.borrow_mut().extend(["/", CWD].map(PathBuf::from));
        for (name, content) in files {
            memory.put(name, content.as_bytes(), 0o644);
        }
        memory
    }

    pub fn put(&self, name: &str, bytes: &[u8], mode: u32) {
        let path = Path::new(CWD).join(name);
        self.folders.borrow_mut().extend(path.ancestors().skip(1).map(Path::to_owned));
        self.files.borrow_mut().insert(path, File { bytes: bytes.into(), mode });
    }

    pub fn mode(&self, name: &str) -> u32 {
        self.files.borrow()[&Path::new(CWD).join(name)].mode
    }

    /// All files and contents, with paths relative to the working directory.
    pub fn all(&self) -> Vec<(String, String)> {
        let files = self.files.borrow();
        let name = |path: &Path| path.strip_prefix(CWD).unwrap_or(path).to_string_lossy().into_owned();
        files.iter().map(|(path, file)| (name(path), String::from_utf8_lossy(&file.bytes).into_owned())).collect()
    }

    pub fn folders(&self) -> Vec<PathBuf> {
        self.folders.borrow().iter().cloned().collect()
    }

    fn check(&self, path: &Path) -> io::Result<()> {
        if self.broken.contains(path) { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(()) }
    }
}

impl Files for MemoryFiles {
    fn read(&self, path: &Path) -> io::Result<File> {
        let path = self.resolve(path, true)?;
        if self.folders.borrow().contains(&path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if path.ancestors().skip(1).any(|folder| self.files.borrow().contains_key(folder)) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        self.files.borrow().get(&path).cloned().ok_or_else(|| io::Error::from_raw_os_error(2))
    }

    fn exists(&self, path: &Path) -> bool {
        self.files.borrow().contains_key(path) || self.folders.borrow().contains(path)
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.folders.borrow().contains(path)
    }

    fn resolve(&self, path: &Path, last: bool) -> io::Result<PathBuf> {
        Ok(if last { self.links.get(path).cloned().unwrap_or_else(|| path.into()) } else { path.into() })
    }
}

impl FilesMut for MemoryFiles {
    fn write(&self, path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
        self.check(path)?;
        if self.folders.borrow().contains(path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        assert!(path.parent().is_some_and(|folder| self.folders.borrow().contains(folder)), "{path:?} has no folder");
        let mut files = self.files.borrow_mut();
        let mode = mode.or(files.get(path).map(|file| file.mode)).unwrap_or(0o644);
        files.insert(path.into(), File { bytes: bytes.into(), mode });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.check(path)?;
        self.files.borrow_mut().remove(path).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.check(path)?;
        let parent = path.parent().unwrap();
        if self.exists(path) || !self.is_dir(parent) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        self.folders.borrow_mut().insert(path.into());
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.check(path)?;
        self.folders.borrow_mut().remove(path);
        Ok(())
    }
}
