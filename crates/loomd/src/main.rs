//! loomd: an agent server for the app-server protocol.

mod app_server;
mod cli;
mod generate;
mod logging;
mod memory;
mod models;
#[allow(dead_code, unused_imports, reason = "`loomd run` comes with turns")]
mod run;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command, ConfigTool};

#[global_allocator]
static ALLOCATOR: memory::Allocator = memory::Allocator;

fn main() -> ExitCode {
    // Commands are confined by this same program under another name, which does not come back from here.
    loomd_exec::run_if_helper();
    let cli = Cli::parse();
    let done = match cli.command {
        Command::AppServer(arguments) => app_server::run(cli.overrides, *arguments),
        Command::Config { tool: ConfigTool::Schema } => generate::config_schema(),
        Command::Models => models::run(cli.overrides),
    };
    logging::flush();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            _ = writeln!(std::io::stderr(), "Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
