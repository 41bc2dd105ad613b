//! The package for npm: `packaging/npm` with the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::command::finish;
use crate::root;

/// Packs the program; returns the name of the archive, which is in `dist`.
pub fn pack(dist: &Path, binary: &Path, triple: &str, notices: &str) -> Result<String> {
    let folder = dist.join("npm");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let source = root().join("packaging/npm");
    for name in ["package.json", "README.md", "index.js", "bin/loomd.js"] {
        copy(&source.join(name), &folder.join(name))?;
    }
    copy(&root().join("LICENSE"), &folder.join("LICENSE"))?;
    fs::write(folder.join("THIRD-PARTY.txt"), notices)?;
    copy(binary, &folder.join("vendor").join(platform(triple)?).join("loomd"))?;
    let pack = ["pack", "--silent", "--pack-destination", ".."];
    finish(Command::new("npm").args(pack).stdout(Stdio::null()).current_dir(&folder))?;
    Ok(format!("loomd-{}.tgz", env!("CARGO_PKG_VERSION")))
}

fn copy(from: &Path, to: &PathBuf) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file has a folder")?)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// What node calls the platform of a target: `process.platform` and `process.arch`.
fn platform(triple: &str) -> Result<&'static str> {
    Ok(match triple {
        "x86_64-unknown-linux-gnu" | "x86_64-unknown-linux-musl" => "linux-x64",
        "aarch64-unknown-linux-gnu" | "aarch64-unknown-linux-musl" => "linux-arm64",
        "x86_64-apple-darwin" => "darwin-x64",
        "aarch64-apple-darwin" => "darwin-arm64",
        other => bail!("there is no package for npm of {other}"),
    })
}
