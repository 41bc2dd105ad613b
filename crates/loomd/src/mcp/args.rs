//! The arguments of `loomd mcp`.

use clap::{ArgGroup, Args, Subcommand};

use crate::cli::Overrides;

#[derive(Args)]
pub struct Mcp {
    #[command(subcommand)]
    pub command: McpCommand,
    #[command(flatten)]
    pub overrides: Overrides,
}

#[derive(Subcommand)]
pub enum McpCommand {
    /// List the configured servers and how they are authenticated
    List {
        /// Print JSON, with the values of variables and headers
        #[arg(long)]
        json: bool,
    },
    /// Show the configuration of a server
    Get {
        name: String,
        /// Print JSON, with the values of variables and headers
        #[arg(long)]
        json: bool,
    },
    /// Add a server to config.toml, or replace it
    Add(AddServer),
    /// Remove a server from config.toml
    Remove { name: String },
    /// Log in to a server with OAuth, in a browser
    Login {
        name: String,
        /// The scopes to request; otherwise the configured ones, or all that the server lists
        #[arg(long, value_name = "SCOPE,SCOPE", value_delimiter = ',')]
        scopes: Option<Vec<String>>,
    },
    /// Delete the stored login to a server
    Logout { name: String },
}

#[derive(Args)]
#[command(
    override_usage = "loomd mcp add [OPTIONS] <NAME> (--url <URL> | -- <COMMAND>...)",
    group = ArgGroup::new("transport").required(true).args(["command", "url"])
)]
pub struct AddServer {
    pub name: String,
    /// The program to start, with its arguments
    #[arg(last = true)]
    pub command: Vec<String>,
    /// A variable for the environment of the program
    #[arg(long, value_name = "KEY=VALUE", value_parser = variable, conflicts_with = "url")]
    pub env: Vec<(String, String)>,
    /// The URL of a server that is reached over HTTP
    #[arg(long)]
    pub url: Option<String>,
    /// The environment variable that holds a bearer token for the URL
    #[arg(long, value_name = "VARIABLE", conflicts_with = "command")]
    pub bearer_token_env_var: Option<String>,
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".into()),
    }
}
