//! Opening, reading and writing regular files that another process may have replaced.
//!
//! A sandboxed command can replace any file of a workspace: with a FIFO, whose opening blocks until a writer appears;
//! with a device; with a sparse file of a terabyte. Every file that a command could have written is therefore opened
//! here: with `O_NONBLOCK`, refused unless it is a regular file, and read up to a limit that the caller gives. Reading
//! a regular file never waits for another process, so these functions may be called from an async task when the limit
//! is small.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Opens a regular file for reading. Follows symlinks; never blocks.
///
/// A directory fails with `EISDIR`, as reading one would. Anything else that is not a regular file fails with
/// [`InvalidInput`](io::ErrorKind::InvalidInput).
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    // Opening some devices has side effects, so the path is checked before it is opened. The check below is the one
    // that cannot race.
    regular(&std::fs::metadata(path)?)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        // `open` of a socket, or of a device without a driver.
        Err(Errno::NXIO | Errno::NODEV) => return Err(not_regular()),
        Err(error) => return Err(error.into()),
    };
    let metadata = check(&file)?;
    Ok((file, metadata))
}

/// Returns the content of a regular file of at most `limit` bytes. Fails with `ELOOP` when the path itself is a symlink.
pub fn read_without_link(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NXIO | Errno::NODEV) => return Err(not_regular()),
        Err(error) => return Err(error.into()),
    };
    let metadata = check(&file)?;
    read_file(file, &metadata, limit)
}

/// Opens a regular file for writing and creates it when it is missing. Does not truncate. Follows symlinks; never
/// blocks.
pub fn open_to_write(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    match rustix::fs::open(path, flags, NEW_FILE) {
        Ok(file) => {
            let file = File::from(file);
            check(&file)?;
            Ok(file)
        }
        // `open` of a FIFO without a reader, or of a socket.
        Err(Errno::NXIO | Errno::NODEV) => Err(not_regular()),
        Err(error) => Err(error.into()),
    }
}

/// Opens a regular file for reading and appending, and creates it for its owner only when it is missing. Follows
/// symlinks; never blocks.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => {
            let file = File::from(file);
            check(&file)?;
            Ok(file)
        }
        Err(Errno::NXIO | Errno::NODEV) => Err(not_regular()),
        Err(error) => Err(error.into()),
    }
}

/// The mode of new files before the umask applies.
const NEW_FILE: Mode = Mode::from_raw_mode(0o666);

/// Copies the content and the permissions of a regular file. Truncates and overwrites an existing destination in place.
pub fn copy(source: &Path, destination: &Path) -> io::Result<()> {
    let (mut source, metadata) = open(source)?;
    let mut destination = open_to_write(destination)?;
    destination.set_len(0)?;
    io::copy(&mut source, &mut destination)?;
    destination.set_permissions(metadata.permissions())
}

/// Returns the metadata of an open file; fails unless it is a regular file.
pub fn check(file: &File) -> io::Result<Metadata> {
    let metadata = file.metadata()?;
    regular(&metadata)?;
    Ok(metadata)
}

fn regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_dir() {
        return Err(Errno::ISDIR.into());
    }
    if metadata.is_file() { Ok(()) } else { Err(not_regular()) }
}

/// Returns the content and the metadata of a regular file. Fails with [`FileTooLarge`](io::ErrorKind::FileTooLarge)
/// when the file is larger than `limit` bytes or grows beyond it while it is read.
pub fn read_with_metadata(path: &Path, limit: u64) -> io::Result<(Vec<u8>, Metadata)> {
    let (file, metadata) = open(path)?;
    let bytes = read_file(file, &metadata, limit)?;
    Ok((bytes, metadata))
}

fn read_file(file: File, metadata: &Metadata, limit: u64) -> io::Result<Vec<u8>> {
    if metadata.len() > limit {
        return Err(too_large(limit));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    // One byte beyond the limit distinguishes a file that is too large from one that just fits.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_large(limit));
    }
    Ok(bytes)
}

/// Returns the content of a regular file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_with_metadata(path, limit).map(|(bytes, _)| bytes)
}

/// Returns the text of a regular file of at most `limit` bytes. Fails with [`InvalidData`](io::ErrorKind::InvalidData)
/// when it is not UTF-8.
pub fn read_to_string(path: &Path, limit: u64) -> io::Result<String> {
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidData, "is not valid UTF-8");
    String::from_utf8(read(path, limit)?).map_err(invalid)
}

/// Returns the first `limit` bytes of a regular file, or the whole content when it is shorter.
pub fn read_start(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.0.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file")
}

fn too_large(limit: u64) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("is larger than {limit} bytes"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn fifo(path: &Path) {
        rustix::fs::mkfifoat(rustix::fs::CWD, path, Mode::RWXU).unwrap();
    }

    #[test]
    fn reading_a_fifo_socket_or_device_fails_without_blocking() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fifo(&at("fifo"));
        symlink("fifo", at("link")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        for path in [at("fifo"), at("link"), at("socket"), "/dev/zero".into(), "/dev/tty".into()] {
            let error = read(&path, 10).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}: {error}", path.display());
            assert_eq!(error.to_string(), "is not a regular file");
            assert_eq!(read_start(&path, 10).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        assert_eq!(read(dir.path(), 10).unwrap_err().to_string(), "Is a directory (os error 21)");
        assert_eq!(read(&at("none"), 10).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_link_is_not_followed_where_none_may_be() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("f"), "12345").unwrap();
        symlink("f", at("link")).unwrap();
        fifo(&at("fifo"));
        assert_eq!(read_without_link(&at("f"), 5).unwrap(), b"12345");
        assert_eq!(read_without_link(&at("f"), 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_without_link(&at("link"), 5).unwrap_err().raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        assert_eq!(read_without_link(&at("fifo"), 5).unwrap_err().to_string(), "is not a regular file");
    }

    #[test]
    fn writing_to_a_fifo_fails_and_truncates_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fifo(&at("fifo"));
        fs::write(at("f"), "text").unwrap();
        assert_eq!(open_to_write(&at("fifo")).unwrap_err().to_string(), "is not a regular file");
        assert_eq!(copy(&at("f"), &at("fifo")).unwrap_err().to_string(), "is not a regular file");
        assert_eq!(copy(&at("fifo"), &at("f")).unwrap_err().to_string(), "is not a regular file");
        assert_eq!(fs::read_to_string(at("f")).unwrap(), "text", "nothing was truncated");
    }

    #[test]
    fn a_copy_has_the_content_and_mode_of_its_source() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("f"), "new").unwrap();
        fs::set_permissions(at("f"), fs::Permissions::from_mode(0o750)).unwrap();
        fs::write(at("g"), "something longer").unwrap();
        for name in ["g", "h"] {
            copy(&at("f"), &at(name)).unwrap();
            assert_eq!(fs::read_to_string(at(name)).unwrap(), "new");
            assert_eq!(fs::metadata(at(name)).unwrap().permissions().mode() & 0o7777, 0o750);
        }
    }

    #[test]
    fn a_file_of_exactly_the_limit_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_to_string(&path, 5).unwrap(), "12345");
        assert_eq!(read(&path, 4).unwrap_err().to_string(), "is larger than 4 bytes");
        assert_eq!(read_start(&path, 4).unwrap(), b"1234");
        assert_eq!(read_start(&path, 9).unwrap(), b"12345");
    }

    #[test]
    fn a_sparse_file_of_a_terabyte_is_refused_before_it_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&path, 1 << 20).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_proc_file_that_reports_no_size_is_still_bounded() {
        // `stat` reports a size of 0.
        assert_eq!(read(Path::new("/proc/self/status"), 10).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(!read(Path::new("/proc/self/status"), 1 << 20).unwrap().is_empty());
    }

    #[test]
    fn text_that_is_not_utf8_is_invalid_data() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("f"), b"\xff").unwrap();
        assert_eq!(read_to_string(&dir.path().join("f"), 5).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
