//! `cargo xtask chaos`: builds the program and lets `loomd-chaos` disturb nodes of it.

use std::process::Command;

use anyhow::Result;

use crate::command::{finish, target};

pub fn run(arguments: &[String]) -> Result<()> {
    let root = crate::root();
    let cargo = || {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(&root);
        command
    };
    let mut program = Vec::new();
    if !arguments.iter().any(|argument| argument == "--program") {
        finish(cargo().args(["build", "--release", "-p", "loomd"]))?;
        program = vec!["--program".into(), target(&root).join("release/loomd").into_os_string()];
    }
    // The clients must not be slower than what they measure.
    let is_measured = arguments.first().is_some_and(|argument| argument == "figures");
    let profile: &[&str] = if is_measured { &["--release"] } else { &[] };
    finish(
        cargo().args(["run", "--quiet"]).args(profile).args(["-p", "loomd-chaos", "--"]).args(arguments).args(program),
    )
}
