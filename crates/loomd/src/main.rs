//! loomd: an agent server for the app-server protocol.

mod app_server;
mod cli;
mod doctor;
mod exec;
mod find;
mod generate;
mod logging;
mod mcp;
mod memory;
mod models;
mod recorded;
mod replay;
mod run;
mod setup;
mod show;
mod skills;
mod threads;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command, ConfigTool, UsageError};

#[global_allocator]
static ALLOCATOR: memory::Allocator = memory::Allocator;

fn main() -> ExitCode {
    // The sandbox runs this executable as a helper under another name; then this call does not return.
    loomd_exec::run_if_helper();
    let Cli { overrides, command } = Cli::parse();
    let done = match command {
        Command::AppServer(arguments) => app_server::run(overrides, *arguments).map(|()| ExitCode::SUCCESS),
        Command::Exec(arguments) => exec::run(overrides, *arguments),
        Command::Threads(arguments) => threads::run(overrides, arguments),
        Command::Replay(arguments) => replay::run(overrides, arguments),
        Command::Mcp(arguments) => mcp::run(overrides, arguments),
        Command::Doctor(arguments) => doctor::run(overrides, arguments),
        Command::Run(arguments) => run::run(overrides, *arguments),
        Command::Config { tool: ConfigTool::Schema } => generate::config_schema().map(|()| ExitCode::SUCCESS),
        Command::Skills(arguments) => skills::run(overrides, arguments),
        Command::Models => models::run(overrides).map(|()| ExitCode::SUCCESS),
    };
    logging::flush();
    done.unwrap_or_else(|error| fail(&error))
}

fn fail(error: &anyhow::Error) -> ExitCode {
    let broken = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    if error.downcast_ref().is_some_and(broken) {
        // The reader of stdout has closed it.
        return ExitCode::FAILURE;
    }
    if error.is::<UsageError>() {
        // The same format as clap's errors.
        _ = writeln!(io::stderr(), "error: {error}");
        return ExitCode::from(2);
    }
    match error.downcast_ref::<loomd_client::Error>().and_then(loomd_client::Error::rpc) {
        // Only the message: method and error code do not help at a command line.
        Some(refused) => _ = writeln!(io::stderr(), "Error: {}", refused.message),
        None => _ = writeln!(io::stderr(), "Error: {error:#}"),
    }
    ExitCode::FAILURE
}
