//! `loomd store`: prepares and checks a database that several servers share, and moves threads in and out of it.

use std::env;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use loomd_store::{FileStore, Options as FileOptions};
use loomd_store_postgres::{Address, Options, PostgresStore, Transferred, export, find_password, import};

use crate::cli::UsageError;
use crate::setup::block_on;

/// The variable that names the store when `--store` does not.
const STORE: &str = "LOOMD_STORE";

#[derive(Args)]
#[command(after_help = "\
The password is part of the URL, or in PGPASSWORD, or in the file that PGPASSFILE names (~/.pgpass without it). It is never
printed. Certificates of the server are always verified; sslrootcert=FILE in the URL names an authority of your own.")]
pub struct Store {
    /// The database, as postgres://USER@HOST:PORT/DATABASE [default: LOOMD_STORE]
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
    /// List the nodes that share the database
    Nodes,
    /// Copy the threads of a home folder into the database
    Import { home: PathBuf },
    /// Copy the threads of the database into a home folder
    Export { home: PathBuf },
}

pub fn run(arguments: Store) -> Result<ExitCode> {
    let address = address(arguments.store)?;
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
            Task::Nodes => {
                for node in store.nodes().await? {
                    let state = match (node.expires_in_ms, node.draining) {
                        (..=0, _) => "expired",
                        (_, true) => "draining",
                        _ => "live",
                    };
                    let url = node.facts.url.as_deref().unwrap_or("-");
                    writeln!(out, "{}  {state:8}  {:5} threads  {url}", node.session, node.threads)?;
                }
            }
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

/// The address with its password, wherever that is.
fn address(store: Option<String>) -> Result<Address> {
    let missing = || UsageError::new(format!("no database: give --store URL or set {STORE}"));
    Ok(find_address(store, None)?.ok_or_else(missing)?)
}

/// The address of the store that is named on the command line, by the environment or by the configuration, with its
/// password; `None` when none is named.
pub fn find_address(store: Option<String>, configured: Option<String>) -> Result<Option<Address>> {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let Some(url) = store.or_else(|| variable(STORE)).or(configured) else { return Ok(None) };
    let address: Address =
        url.parse().map_err(|error: loomd_store_postgres::BadAddress| UsageError::new(error.to_string()))?;
    if address.has_password() {
        return Ok(Some(address));
    }
    let file =
        variable("PGPASSFILE").map(PathBuf::from).or_else(|| Some(Path::new(&variable("HOME")?).join(".pgpass")));
    let password = variable("PGPASSWORD").or_else(|| find_password(&file?, &address));
    Ok(Some(match password {
        Some(password) => address.with_password(&password),
        None => address,
    }))
}
