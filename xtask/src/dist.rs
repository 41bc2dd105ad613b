//! `cargo xtask dist`: the archive of a release, with checksums, and the package for npm.

mod licences;
mod npm;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

use crate::command::{finish, target};
use crate::root;

const SHELLS: &[&str] = &["bash", "elvish", "fish", "zsh"];

/// Where the files for distribution go, below the folder of builds.
const FOLDER: &str = "dist";

struct Options {
    /// The program to pack; without it, a release build.
    binary: Option<PathBuf>,
    /// The target that it was built for; the machine's own unless given.
    triple: Option<String>,
    npm: bool,
}

pub fn run(arguments: &[String]) -> Result<()> {
    let options = parse(arguments)?;
    let triple = match options.triple.clone() {
        Some(triple) => triple,
        None => host()?,
    };
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => build(&triple)?,
    };
    ensure!(binary.is_file(), "{} is no file", binary.display());
    let dist = target(&root()).join(FOLDER);
    let name = format!("loomd-{}-{triple}", env!("CARGO_PKG_VERSION"));
    let folder = dist.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    let notices = licences::notices(&triple)?;
    stage(&folder, &binary, &notices)?;
    let archive = format!("{name}.tar.gz");
    pack(&dist, &name, &archive)?;
    let mut made = vec![archive];
    if options.npm {
        made.push(npm::pack(&dist, &binary, &triple, &notices)?);
    }
    let sums = checksums(&dist, &made)?;
    let file = dist.join(format!("{name}.sha256"));
    fs::write(&file, sums).with_context(|| file.display().to_string())?;
    for made in made {
        println!("{}", dist.join(made).display());
    }
    println!("{}", file.display());
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options { binary: None, triple: None, npm: false };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--binary" => options.binary = Some(value()?.into()),
            "--target" => options.triple = Some(value()?.clone()),
            "--npm" => options.npm = true,
            other => bail!("unknown argument {other}; expected --binary PATH, --target TRIPLE or --npm"),
        }
    }
    Ok(options)
}

/// The target of this machine's compiler.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).context("`rustc -vV` does not name a host")
}

/// A release build for the target.
fn build(triple: &str) -> Result<PathBuf> {
    let arguments = ["build", "--locked", "--release", "--package", "loomd", "--target", triple];
    finish(Command::new(env!("CARGO")).args(arguments).current_dir(root()))?;
    Ok(target(&root()).join(triple).join("release/loomd"))
}

/// Puts everything that belongs into the archive into a folder.
fn stage(folder: &Path, binary: &Path, notices: &str) -> Result<()> {
    let copy = |from: PathBuf, to: &str| -> Result<()> {
        let to = folder.join(to);
        fs::create_dir_all(to.parent().context("a file has a folder")?)?;
        fs::copy(&from, &to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
        Ok(())
    };
    copy(binary.to_owned(), "bin/loomd")?;
    for name in ["README.md", "CHANGELOG.md", "LICENSE", "SECURITY.md"] {
        copy(root().join(name), name)?;
    }
    for entry in fs::read_dir(root().join("docs"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "md") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            copy(path, &format!("docs/{name}"))?;
        }
    }
    for name in ["loomd.service", "loomd.socket", "loomd-node.service"] {
        copy(root().join("packaging/systemd").join(name), &format!("systemd/{name}"))?;
    }
    fs::write(folder.join("THIRD-PARTY.txt"), notices)?;
    completions(binary, &folder.join("completions"))?;
    manual(binary, &folder.join("man"))
}

/// Completions of every shell. A program without that command is packed without them.
fn completions(binary: &Path, folder: &Path) -> Result<()> {
    for shell in SHELLS {
        let output = Command::new(binary).args(["completions", shell]).output().context("cannot run the program")?;
        if !output.status.success() {
            skipped("completions", &output.stderr);
            return Ok(());
        }
        fs::create_dir_all(folder)?;
        fs::write(folder.join(format!("loomd.{shell}")), output.stdout)?;
    }
    Ok(())
}

/// The manual pages. A program without that command is packed without them.
fn manual(binary: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder.join("man1"))?;
    let pages = Command::new(binary).arg("man").arg(folder.join("man1")).output().context("cannot run the program")?;
    if !pages.status.success() {
        skipped("manual pages", &pages.stderr);
        fs::remove_dir_all(folder)?;
    }
    Ok(())
}

fn skipped(what: &str, stderr: &[u8]) {
    let reason = String::from_utf8_lossy(stderr);
    let reason = reason.lines().next().unwrap_or("it fails");
    eprintln!("without {what}: the program does not write them ({reason})");
}

/// Packs a folder so that the same files make the same archive.
fn pack(dist: &Path, name: &str, archive: &str) -> Result<()> {
    let order = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"];
    let mut tar = Command::new("tar");
    tar.args(order).args(["--use-compress-program", "gzip -n", "-cf", archive, name]).current_dir(dist);
    finish(&mut tar)
}

/// The checksums of files, as `sha256sum -c` reads them.
fn checksums(folder: &Path, files: &[String]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for name in files {
        let bytes = fs::read(folder.join(name)).with_context(|| name.clone())?;
        for byte in Sha256::digest(bytes) {
            write!(text, "{byte:02x}")?;
        }
        writeln!(text, "  {name}")?;
    }
    Ok(text)
}
