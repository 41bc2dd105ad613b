//! `--version`. Clients of the protocol run it to learn whether the server is new enough, so it names the release of the
//! protocol: under the name `codex`, as those clients expect it, else beside the program's own version.

use std::env;
use std::path::Path;

use clap::Parser;
use clap::error::ErrorKind;
use loomd_protocol::Level;

use crate::cli::{self, Cli};
use crate::setup::Setup;

/// Parses the command line. Prints the version if that is asked for, and returns `None`; exits for `--help` and usage
/// errors.
pub fn parse() -> Option<Cli> {
    match Cli::try_parse() {
        Ok(cli) => Some(cli),
        Err(error) if error.kind() == ErrorKind::DisplayVersion => {
            println!("{}", text(&reported(), is_called_codex()));
            None
        }
        Err(error) => error.exit(),
    }
}

fn text(reported: &str, called_codex: bool) -> String {
    match called_codex {
        true => format!("codex-cli {reported}"),
        false => format!("loomd {} (protocol {reported})", env!("CARGO_PKG_VERSION")),
    }
}

/// The release that the server would report; the newest one if the configuration cannot be read.
fn reported() -> String {
    match Setup::new(&cli::Overrides::default()) {
        Ok(setup) => loomd_server::reported_version(&setup.start.loaded),
        Err(_) => Level::LATEST.version().into(),
    }
}

fn is_called_codex() -> bool {
    let called = env::args_os().next();
    called.is_some_and(|name| Path::new(&name).file_stem().is_some_and(|stem| stem == "codex"))
}
