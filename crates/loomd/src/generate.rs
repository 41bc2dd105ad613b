//! `generate-ts`, `generate-json-schema` and `config schema`: write generated files.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use loomd_protocol::Level;
use loomd_protocol::schema::{File, json_schemas, typescript};

use crate::recorded::Recorded;

pub fn json_schema(out: &Path, level: Level, experimental: bool) -> Result<()> {
    let Recorded { json_schema, .. } = Recorded::load()?;
    write(out, &json_schemas(&json_schema.surface(level, experimental))).map(drop)
}

pub fn ts(out: &Path, prettier: Option<&Path>, level: Level, experimental: bool) -> Result<()> {
    let recorded = Recorded::load()?;
    let files = write(out, &typescript(&recorded.typescript.surface(level, experimental)))?;
    let Some(prettier) = prettier else { return Ok(()) };
    let status = Command::new(prettier)
        .args(["--write", "--log-level", "warn"])
        .args(files)
        .status()
        .with_context(|| format!("Failed to invoke Prettier at {}", prettier.display()))?;
    ensure!(status.success(), "Prettier failed: {status}");
    Ok(())
}

/// Prints the schema to stdout, to be saved where an editor looks for it.
pub fn config_schema() -> Result<()> {
    writeln!(io::stdout(), "{:#}", Recorded::load()?.config_toml).context("Failed to write the schema")
}

/// Writes files into a folder; other files in it stay.
fn write(out: &Path, files: &[File]) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for file in files {
        let path = out.join(&file.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("Failed to create {}", folder.display()))?;
        }
        fs::write(&path, &file.text).with_context(|| format!("Failed to write {}", path.display()))?;
        paths.push(path);
    }
    Ok(paths)
}
