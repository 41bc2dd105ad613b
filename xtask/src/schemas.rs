//! `cargo xtask schemas`: records the schemas that the program contains. The test that compares them with the types
//! also writes them.

use std::process::Command;

use anyhow::Result;

use crate::command::finish;

pub fn record() -> Result<()> {
    let test = ["test", "--quiet", "--package", "loomd", "--bin", "loomd", "recorded_schemas"];
    finish(Command::new(env!("CARGO")).args(test).env("LOOMD_RECORD_SCHEMAS", "1").current_dir(crate::root()))
}
