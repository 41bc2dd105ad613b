//! Compresses the files of the page into the crate.

use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    let page = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("page"))?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut files = vec![page.join("index.html")];
    for folder in ["src", "style", "vendor"] {
        let folder = page.join(folder);
        println!("cargo:rerun-if-changed={}", folder.display());
        walk(&folder, &mut files)?;
    }
    files.sort();
    let mut table = String::from("&[\n");
    for (number, file) in files.iter().enumerate() {
        println!("cargo:rerun-if-changed={}", file.display());
        let bytes = fs::read(file)?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&bytes)?;
        let compressed = out.join(format!("{number}.gz"));
        fs::write(&compressed, encoder.finish()?)?;
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let path = file.strip_prefix(&page).map_err(io::Error::other)?;
        let tag = format!("\"{:016x}\"", hasher.finish());
        writeln!(table, "Embedded {{ path: {path:?}, gzip: include_bytes!({compressed:?}), etag: {tag:?} }},")
            .map_err(io::Error::other)?;
    }
    table.push(']');
    fs::write(out.join("files.rs"), table)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "js" || end == "css" || end == "svg") {
            files.push(path);
        }
    }
    Ok(())
}
