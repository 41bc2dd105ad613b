//! `fs/readFile`: a file as base64. It is encoded chunk by chunk, so it is in memory once, as text.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::{FsError, Result};

/// Larger files are refused: the result is one message.
pub const MAX_READ: u64 = 512 << 20;

/// A multiple of three, so that chunks can be encoded one by one.
const PIECE: usize = 48 * 1024;

pub fn read_file(path: &Path) -> Result<String> {
    let (file, metadata) = open(path)?;
    if metadata.len() > MAX_READ {
        return Err(too_large());
    }
    // A file may grow while it is read.
    encode(file.take(MAX_READ + 1), metadata.len())
}

fn open(path: &Path) -> Result<(File, Metadata)> {
    loomd_regular::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => special(),
        _ => error.into(),
    })
}

pub(crate) fn check_kind(metadata: &Metadata) -> Result<()> {
    if metadata.is_file() { Ok(()) } else { Err(special()) }
}

fn special() -> FsError {
    FsError::refused("only regular files can be read and written: this is a pipe, a socket or a device")
}

fn too_large() -> FsError {
    FsError::refused(format!("file is too large to read: limit is {MAX_READ} bytes"))
}

fn encode(mut source: impl Read, expected: u64) -> Result<String> {
    let mut text = String::with_capacity((expected as usize).div_ceil(3) * 4);
    let mut piece = vec![0; PIECE];
    let mut total = 0;
    loop {
        let mut filled = 0;
        while filled < PIECE {
            match source.read(&mut piece[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        total += filled as u64;
        if total > MAX_READ {
            return Err(too_large());
        }
        STANDARD.encode_string(&piece[..filled], &mut text);
        if filled < PIECE {
            return Ok(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_any_size_is_encoded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        for size in [0, 1, 2, 3, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7] {
            let data: Vec<u8> = (0..size).map(|index| (index * 7) as u8).collect();
            std::fs::write(&path, &data).unwrap();
            assert_eq!(read_file(&path).unwrap(), STANDARD.encode(&data), "{size}");
        }
    }

    #[test]
    fn read_errors_name_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let check = |name: &str, expected: &str| {
            assert_eq!(read_file(&dir.path().join(name)).unwrap_err().to_string(), expected);
        };
        check("none", "No such file or directory (os error 2)");
        check(".", "Is a directory (os error 21)");
        File::create(dir.path().join("sparse")).unwrap().set_len(MAX_READ + 1).unwrap();
        check("sparse", "file is too large to read: limit is 536870912 bytes");
        check("sparse/x", "Not a directory (os error 20)");
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("fifo"), rustix::fs::Mode::RWXU).unwrap();
        check("fifo", "only regular files can be read and written: this is a pipe, a socket or a device");
    }
}
