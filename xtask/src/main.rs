//! Tasks of the project. `cargo xtask` lists them.

mod bench;
mod chaos;
mod command;
mod conformance;
mod cycles;
mod dist;
mod docs;
mod inventory;
mod schemas;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

const USAGE: &str = "\
cargo xtask bench [bench.py arguments]
    Builds release and runs bench/bench.py against the reference, which is installed from npm.
cargo xtask chaos [kills | figures] [--program PATH] [--seed N] [--minutes M] [--nodes K] [loomd-chaos arguments]
    Builds release, or takes a program, and disturbs nodes of it on a private PostgreSQL while random clients use them;
    then compares what the clients saw with what is stored. `kills` kills owners of turns, `figures` measures.
cargo xtask conformance [--areas A,B] [--debug] [--server COMMAND] [-- pytest arguments]
    Builds release (or debug) and runs the conformance suites against it: the areas in .ci/areas, or those named.
cargo xtask cycles
    Fails when modules of the agent or the server depend on each other in a circle.
cargo xtask dist [--binary PATH] [--target TRIPLE] [--npm]
    Builds release, or takes a program, and packs it with completions, manual pages, notices and checksums.
cargo xtask docs
    Writes the generated parts of docs/: keys of the configuration, methods, messages, example programs.
cargo xtask inventory VERSION STABLE.json EXPERIMENTAL.json
    Records the inventory of a release from its two schema bundles.
cargo xtask schemas
    Records the schemas that the program carries, after a type of the protocol or the configuration has changed.";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((task, rest)) if task == "bench" => bench::run(rest),
        Some((task, rest)) if task == "chaos" => chaos::run(rest),
        Some((task, rest)) if task == "conformance" => conformance::run(rest),
        Some((task, [])) if task == "cycles" => cycles::check(),
        Some((task, rest)) if task == "dist" => dist::run(rest),
        Some((task, [])) if task == "docs" => docs::write(),
        Some((task, [version, stable, experimental])) if task == "inventory" => {
            inventory::record(version, stable, experimental)
        }
        Some((task, [])) if task == "schemas" => schemas::record(),
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
