//! The arguments of `loomd config`.

use clap::{Args, Subcommand};

use crate::cli::Overrides;

#[derive(Args)]
pub struct Config {
    #[command(subcommand)]
    pub command: ConfigCommand,
    #[command(flatten)]
    pub overrides: Overrides,
}

/// A key is dotted, such as `model_providers.mine.base_url`; a part with dots is quoted.
#[derive(Subcommand)]
pub enum ConfigCommand {
    /// Print a value that applies in this folder, or all values that are set
    Get {
        /// The key; all of them if it is not given
        key: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Print where the value is set, too
        #[arg(long, requires = "key")]
        origin: bool,
    },
    /// Set a value in the user's config.toml
    Set {
        key: String,
        /// A TOML value; other text is a string
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove a value from the user's config.toml
    Unset { key: String },
    /// Open the user's config.toml in $VISUAL or $EDITOR, then check it
    Edit,
    /// Print the path of the user's config.toml
    Path,
    /// Print the JSON Schema of config.toml
    Schema,
}
