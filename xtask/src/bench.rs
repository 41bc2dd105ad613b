//! `cargo xtask bench`: runs our release build and the reference on the same benchmark.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{finish, target};

const REFERENCE: &str = "@openai/codex@0.118.0";

pub fn run(arguments: &[String]) -> Result<()> {
    let root = crate::root();
    let script = root.join("bench/bench.py");
    let reference = install_reference(&root)?;
    finish(Command::new(env!("CARGO")).args(["build", "--release", "-p", "loomd"]).current_dir(&root))?;
    let ours = target(&root).join("release/loomd");
    finish(
        Command::new("python3")
            .arg(script)
            .arg(format!("ref={} app-server", reference.display()))
            .arg(format!("ours={} app-server", ours.display()))
            .args(arguments),
    )
}

/// The reference's binary, from npm. The native program inside the package is used, so that the start-up of the node
/// launcher is not measured.
fn install_reference(root: &Path) -> Result<PathBuf> {
    let folder = target(root).join("reference");
    let binary = || find(&folder, "codex").filter(|path| path.components().any(|part| part.as_os_str() == "vendor"));
    if let Some(binary) = binary() {
        return Ok(binary);
    }
    std::fs::create_dir_all(&folder)?;
    finish(Command::new("npm").args(["install", "--silent", "--no-audit", "--prefix"]).arg(&folder).arg(REFERENCE))?;
    binary().with_context(|| format!("no native binary in {REFERENCE}"))
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            folders.push(path);
        } else if path.file_name().is_some_and(|file| file == name) && path.is_file() && !path.is_symlink() {
            return Some(path);
        }
    }
    folders.into_iter().find_map(|folder| find(&folder, name))
}
