//! `loomd store`: prepares and checks a database that several servers share, and moves threads in and out of it.

mod address;
mod nodes;

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use loomd_store::{FileStore, Options as FileOptions};
use loomd_store_postgres::{Options, PostgresStore, Transferred, export, import};

pub use address::{find as find_address, required as required_address};
pub use nodes::{Nodes, run as run_nodes, state as node_state};

use crate::cli::TopOverrides;
use crate::setup::block_on;

#[derive(Args)]
#[command(after_help = "\
The password is part of the URL, or in PGPASSWORD, or in the file that PGPASSFILE names (~/.pgpass without it). It is never
printed. Certificates of the server are always verified; sslrootcert=FILE in the URL names an authority of your own.")]
pub struct Store {
    /// The database, as postgres://USER@HOST:PORT/DATABASE [default: LOOMD_STORE, or `store` in the table `loomd` of
    /// config.toml]
    #[arg(long, value_name = "URL", global = true)]
    store: Option<String>,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Make or update the tables
    Migrate,
    /// Check the server, the tables and the records, and change nothing
    Check,
    /// List the nodes that share the database, as `loomd nodes` does
    Nodes {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Copy the threads of a home folder into the database
    Import { home: PathBuf },
    /// Copy the threads of the database into a home folder
    Export { home: PathBuf },
}

pub fn run(top: TopOverrides, arguments: Store) -> Result<ExitCode> {
    let address = required_address(arguments.store, top)?;
    block_on(async {
        let store = PostgresStore::new(Options::new(address));
        let mut out = stdout().lock();
        match arguments.task {
            Task::Migrate => {
                store.connect().await?;
                let check = store.check().await?;
                writeln!(out, "{}: the tables have version {}", store.place(), check.schema)?;
            }
            Task::Check => {
                let check = store.check().await?;
                writeln!(out, "server   PostgreSQL {}", check.server)?;
                writeln!(out, "schema   {}", check.schema)?;
                writeln!(out, "threads  {}, {} records", check.threads, check.events)?;
                if check.schema == 0 {
                    writeln!(out, "There are no tables yet: run `loomd store migrate`.")?;
                }
                if check.broken + check.missing_blobs > 0 {
                    writeln!(
                        out,
                        "damaged  {} threads, {} records without content",
                        check.broken, check.missing_blobs
                    )?;
                    return Ok(ExitCode::FAILURE);
                }
            }
            Task::Nodes { json } => nodes::print(&store.nodes().await?, json, &mut out)?,
            Task::Import { home } => {
                let done = import(&files(&home)?, &store).await;
                // Servers need not wait for the leases to expire.
                store.end_session().await?;
                let done = done?;
                return report(&mut out, &done, "imported");
            }
            Task::Export { home } => {
                std::fs::create_dir_all(&home).with_context(|| home.display().to_string())?;
                let done = export(&store, &files(&home)?).await?;
                return report(&mut out, &done, "exported");
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn report(out: &mut impl Write, done: &Transferred, verb: &str) -> Result<ExitCode> {
    writeln!(out, "{verb} {} threads with {} records; {} were already there", done.copied, done.records, done.present)?;
    for refused in &done.refused {
        writeln!(out, "left out: {refused}")?;
    }
    Ok(if done.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn files(home: &Path) -> Result<FileStore> {
    let home = home.canonicalize().with_context(|| home.display().to_string())?;
    Ok(FileStore::new(FileOptions { home, sqlite_home: None }))
}
