//! loomd: an agent server for the app-server protocol.

mod app_server;
mod cli;
mod generate;
mod logging;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::AppServer(arguments) => app_server::run(cli.overrides, *arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
