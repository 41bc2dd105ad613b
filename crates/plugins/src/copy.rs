//! Copies the folder of a plugin: regular files and folders, within bounds.

use std::fs;
use std::io;
use std::path::Path;

const MAX_FILES: usize = 50_000;
const MAX_BYTES: u64 = 1 << 30;
const MAX_DEPTH: usize = 64;

/// Copies a folder to one that does not exist. Links and other special files are left out.
pub(crate) fn copy_folder(source: &Path, target: &Path) -> io::Result<()> {
    Copying::default().folder(source, target, 0)
}

#[derive(Default)]
struct Copying {
    files: usize,
    bytes: u64,
}

impl Copying {
    fn folder(&mut self, source: &Path, target: &Path, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(io::Error::other(format!("folders are nested deeper than {MAX_DEPTH} levels")));
        }
        loomd_private::create_dir_all(target)?;
        for entry in fs::read_dir(source)? {
            let entry = entry?;
            let (from, to) = (entry.path(), target.join(entry.file_name()));
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.count(0)?;
                self.folder(&from, &to, depth + 1)?;
            } else if kind.is_file() {
                self.count(entry.metadata()?.len())?;
                loomd_regular::copy(&from, &to)?;
            }
        }
        Ok(())
    }

    fn count(&mut self, bytes: u64) -> io::Result<()> {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.files > MAX_FILES {
            return Err(io::Error::other(format!("more than {MAX_FILES} files")));
        }
        if self.bytes > MAX_BYTES {
            return Err(io::Error::other(format!("larger than {MAX_BYTES} bytes")));
        }
        Ok(())
    }
}
