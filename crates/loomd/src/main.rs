//! loomd: an agent server for the app-server protocol.

mod account;
mod app_server;
mod chat;
mod cli;
mod config;
mod console;
mod demo;
mod doctor;
mod exec;
mod find;
mod fork;
mod generate;
mod generated_docs;
mod logging;
mod mcp;
mod memory;
mod models;
#[cfg(feature = "postgres")]
mod node;
#[cfg(not(feature = "postgres"))]
#[path = "no_node.rs"]
mod node;
mod recorded;
mod replay;
mod review;
mod run;
mod setup;
mod show;
mod skills;
#[cfg(feature = "postgres")]
mod store;
mod suggest;
mod threads;
mod trust;
mod usage;
mod version;

use std::io::{self, Write};
use std::process::ExitCode;

use cli::{Cli, Command, UsageError};

#[global_allocator]
static ALLOCATOR: memory::Allocator = memory::Allocator;

fn main() -> ExitCode {
    // The sandbox runs this executable as a helper under another name; then this call does not return.
    loomd_exec::run_if_helper();
    let Some(Cli { overrides, command }) = version::parse() else { return ExitCode::SUCCESS };
    let Some(command) = command else {
        let done = if chat::is_possible() { chat::run(overrides) } else { Ok(cli::missing_command()) };
        logging::flush();
        return done.unwrap_or_else(|error| fail(&error));
    };
    let done = match command {
        Command::AppServer(arguments) => app_server::run(overrides, *arguments).map(|()| ExitCode::SUCCESS),
        Command::Console(arguments) => console::run(overrides, *arguments).map(|()| ExitCode::SUCCESS),
        Command::Exec(arguments) => exec::run(overrides, *arguments),
        Command::Threads(arguments) => threads::run(overrides, arguments),
        Command::Replay(arguments) => replay::run(overrides, arguments),
        Command::Mcp(arguments) => mcp::run(overrides, arguments),
        Command::Doctor(arguments) => doctor::run(overrides, arguments),
        Command::Run(arguments) => run::run(overrides, *arguments),
        Command::Review(arguments) => review::run(overrides, *arguments),
        Command::Fork(arguments) => fork::run(overrides, *arguments),
        Command::Demo(arguments) => demo::run(overrides, arguments),
        Command::Config(arguments) => config::run(overrides, arguments),
        Command::Login(arguments) => account::login(overrides, arguments),
        Command::Logout(arguments) => account::logout(overrides, arguments),
        Command::Whoami(arguments) => account::whoami(overrides, arguments),
        Command::Trust(arguments) => trust::run(overrides, arguments),
        Command::Completions(arguments) => generated_docs::completions(&arguments),
        Command::Man(arguments) => generated_docs::man(&arguments),
        Command::Skills(arguments) => skills::run(overrides, arguments),
        Command::Usage(arguments) => usage::run(overrides, arguments),
        #[cfg(feature = "postgres")]
        Command::Store(arguments) => store::run(overrides, arguments),
        #[cfg(feature = "postgres")]
        Command::Nodes(arguments) => store::run_nodes(overrides, arguments),
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
    match error.downcast_ref::<loomd_client::Error>() {
        // Its text has the cause already; of a response only the message: method and code do not help here.
        Some(client) => match client.rpc() {
            Some(refused) => _ = writeln!(io::stderr(), "error: {}", refused.message),
            None => _ = writeln!(io::stderr(), "error: {client}"),
        },
        None => _ = writeln!(io::stderr(), "error: {error:#}"),
    }
    ExitCode::FAILURE
}
