//! `loomd completions` and `loomd man`: generated from the command line's definition.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;

#[derive(Args)]
#[command(after_help = "\
For example:
  loomd completions bash > ~/.local/share/bash-completion/completions/loomd
  loomd completions zsh > \"${fpath[1]}/_loomd\"
  loomd completions fish > ~/.config/fish/completions/loomd.fish")]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}

#[derive(Args)]
pub struct Man {
    /// The output folder; it is created
    pub folder: PathBuf,
}

pub fn completions(arguments: &Completions) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "loomd", &mut script);
    stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page for the program and one for each command.
pub fn man(arguments: &Man) -> Result<ExitCode> {
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    write_pages(Cli::command(), folder)?;
    Ok(ExitCode::SUCCESS)
}

fn write_pages(command: clap::Command, folder: &Path) -> Result<()> {
    clap_mangen::generate_to(command, folder).with_context(|| format!("cannot write to {}", folder.display()))
}
