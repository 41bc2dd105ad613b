//! loomd: an agent server for the app-server protocol.

mod app_server;
mod cli;
mod generate;
mod logging;
#[allow(dead_code, unused_imports, reason = "`loomd run` comes with turns")]
mod run;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    // Confined commands are started through this program, before there are threads or anything else.
    loomd_exec::sandbox::run_if_helper();
    let cli = Cli::parse();
    let done = match cli.command {
        Command::AppServer(arguments) => app_server::run(cli.overrides, *arguments),
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
