//! The files of the page.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;

/// A file as it is embedded.
struct Embedded {
    path: &'static str,
    gzip: &'static [u8],
    etag: &'static str,
}

const EMBEDDED: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// A file as it is sent.
pub(crate) struct File {
    pub bytes: Cow<'static, [u8]>,
    /// Whether the bytes are compressed with gzip.
    pub gzip: bool,
    /// `None` for a file that was read from the disk just now.
    pub etag: Option<&'static str>,
    pub mime: &'static str,
}

/// Returns the file of a path below the page's folder, such as `src/main.js`. Debug builds read it from the sources,
/// so that a change is visible after a reload.
pub(crate) fn find(path: &str, accepts_gzip: bool) -> Option<File> {
    let mime = mime(path);
    if cfg!(debug_assertions)
        && is_of_page(path)
        && let Ok(bytes) = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("page").join(path))
    {
        return Some(File { bytes: bytes.into(), gzip: false, etag: None, mime });
    }
    let file = EMBEDDED.iter().find(|file| file.path == path)?;
    let bytes = if accepts_gzip { file.gzip.into() } else { unpack(file.gzip)?.into() };
    Some(File { bytes, gzip: accepts_gzip, etag: Some(file.etag), mime })
}

/// Whether a path could be that of an embedded file.
fn is_of_page(path: &str) -> bool {
    let below = ["src/", "style/", "vendor/"].iter().any(|folder| path.starts_with(folder));
    path == "index.html" || (below && !path.split('/').any(|part| part.is_empty() || part.starts_with('.')))
}

fn unpack(gzip: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(gzip).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn mime(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/html; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a browser loads in all, compressed.
    const LIMIT: usize = 250 * 1024;

    #[test]
    fn the_page_is_smaller_than_its_limit() {
        let total: usize = EMBEDDED.iter().map(|file| file.gzip.len()).sum();
        assert!(total < LIMIT, "{total} bytes");
    }

    #[test]
    fn an_embedded_file_unpacks_to_its_source() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        for file in EMBEDDED {
            assert_eq!(unpack(file.gzip).unwrap(), std::fs::read(page.join(file.path)).unwrap(), "{}", file.path);
        }
        assert!(EMBEDDED.iter().any(|file| file.path == "src/main.js"));
    }

    #[test]
    fn no_source_file_of_the_page_is_longer_than_300_lines() {
        for file in EMBEDDED.iter().filter(|file| !file.path.starts_with("vendor/")) {
            let lines = unpack(file.gzip).unwrap().iter().filter(|byte| **byte == b'\n').count();
            assert!(lines <= 300, "{} has {lines} lines", file.path);
        }
    }

    #[test]
    fn every_module_is_loaded_ahead_and_not_one_after_the_other() {
        let index = EMBEDDED.iter().find(|file| file.path == "index.html").unwrap();
        let index = String::from_utf8(unpack(index.gzip).unwrap()).unwrap();
        for file in EMBEDDED.iter().filter(|file| file.path.ends_with(".js")) {
            assert!(index.contains(&format!("\"/console/{}\"", file.path)), "{} is not in index.html", file.path);
        }
        let listed = index.matches("/console/src/").count() + index.matches("/console/vendor/").count();
        assert_eq!(listed, EMBEDDED.iter().filter(|file| file.path.ends_with(".js")).count());
    }

    #[test]
    fn a_path_outside_of_the_page_is_not_found() {
        for path in ["../Cargo.toml", "src/../index.html", "/etc/passwd", "README.md", "tests/run.mjs", ""] {
            assert!(find(path, true).is_none(), "{path}");
        }
    }
}
