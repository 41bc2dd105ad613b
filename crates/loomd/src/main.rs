//! loomd: an agent server for the app-server protocol.

mod app_server;
mod cli;
mod generate;
mod logging;
mod models;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::AppServer(arguments) => app_server::run(cli.overrides, *arguments),
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
