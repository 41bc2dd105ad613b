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

/// A thread is given by its id, its name (of several, the last updated), a prefix of its id, or `last`.
#[derive(Subcommand)]
pub enum ThreadsCommand {
    /// List threads, the last used first
    List {
        /// Threads of every folder
        #[arg(long)]
        all: bool,
        /// Archived threads
        #[arg(long)]
        archived: bool,
        /// Threads whose first prompt contains this text
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// The largest number of threads
        #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20)]
        limit: usize,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show the messages and items of a thread
    Show {
        /// The thread: its id, a prefix of its id, its name, or `last`
        thread: String,
    },
    /// Name a thread
    Rename {
        /// The thread: its id, a prefix of its id, its name, or `last`
        thread: String,
        /// Its name
        name: String,
    },
    /// Archive threads
    Archive {
        /// The threads: their ids, prefixes of their ids, or names
        #[arg(required = true)]
        threads: Vec<String>,
    },
    /// Unarchive threads
    Unarchive {
        /// The threads: their ids, prefixes of their ids, or names
        #[arg(required = true)]
        threads: Vec<String>,
    },
    /// Delete threads permanently
    Delete {
        /// The threads: their ids, prefixes of their ids, or names
        #[arg(required = true)]
        threads: Vec<String>,
        /// Without confirmation
        #[arg(short, long)]
        yes: bool,
    },
    /// Export a thread
    Export {
        /// The thread: its id, a prefix of its id, its name, or `last`
        thread: String,
        #[arg(short, long, value_name = "FORMAT", default_value = "markdown")]
        format: Format,
        /// The output file [default: stdout]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A document for people
    Markdown,
    /// The thread with its turns and items, as in the protocol
    Json,
    /// The rollout, which any server of the protocol can resume
    Rollout,
}
