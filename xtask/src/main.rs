//! Tasks of the project. `cargo xtask` lists them.

mod bench;
mod inventory;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

const USAGE: &str = "\
cargo xtask bench [bench.py arguments]
    Builds release and runs the shared benchmark against the reference, which is installed from npm.
cargo xtask inventory STABLE.json EXPERIMENTAL.json
    Records the inventory of a release from its two schema bundles.";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((chore, rest)) if chore == "bench" => bench::run(rest),
        Some((chore, [stable, experimental])) if chore == "inventory" => inventory::record(stable, experimental),
        None => {
            println!("{USAGE}");
            Ok(())
        }
        Some(_) => bail!("unknown task or arguments\n{USAGE}"),
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}
