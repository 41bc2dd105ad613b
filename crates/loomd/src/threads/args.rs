//! The arguments of `loomd threads`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::Overrides;

#[derive(Args)]
pub struct Threads {
    #[command(subcommand)]
    pub command: ThreadsCommand,
    #[command(flatten)]
    pub overrides: Overrides,
}

/// A thread is meant by its id, the beginning of its id, its name, or `last`.
#[derive(Subcommand)]
pub enum ThreadsCommand {
    /// List threads, the last used first
    List {
        /// Those of every folder, not only of this one
        #[arg(long)]
        all: bool,
        /// Those that were archived
        #[arg(long)]
        archived: bool,
        /// Those that began with a prompt that has this text
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// How many
        #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20)]
        limit: usize,
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show what was said and done in a thread
    Show { thread: String },
    /// Give a thread a name
    Rename { thread: String, name: String },
    /// Put threads away
    Archive {
        #[arg(required = true)]
        threads: Vec<String>,
    },
    /// Take threads back
    Unarchive {
        #[arg(required = true)]
        threads: Vec<String>,
    },
    /// Delete threads for good
    Delete {
        #[arg(required = true)]
        threads: Vec<String>,
        /// Without asking
        #[arg(short, long)]
        yes: bool,
    },
    /// Write a thread to a file
    Export {
        thread: String,
        #[arg(short, long, value_name = "FORMAT", default_value = "markdown")]
        format: Format,
        /// The file [default: stdout]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// To be read
    Markdown,
    /// The thread with its turns and items, as clients get it
    Json,
    /// The thread's own file, which any server of the protocol can take up
    Rollout,
}
