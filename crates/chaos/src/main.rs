//! `cargo xtask chaos`: runs nodes on one PostgreSQL with random clients, and kills, pauses, drains and disconnects them
//! by a seeded schedule. Afterwards the history that the clients saw is compared with what is stored. A violation prints
//! the seed and the history of its thread; the same seed gives the same requests and the same faults, at about the same
//! times.

mod checks;
mod client;
mod connection;
mod faults;
mod figures;
mod history;
mod kills;
mod options;
mod percentiles;
mod plan;
mod processes;
mod run;
mod stored;
mod world;

use std::process::ExitCode;

use anyhow::Result;

use crate::options::{Options, Task};

fn main() -> Result<ExitCode> {
    let options = Options::parse(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        tokio::select! {
            done = perform(&options) => done,
            // All processes end with the objects that started them.
            _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("stopped by a signal")),
        }
    });
    // Nodes end with the runtime's threads, and the database with its owner, which is gone by now.
    runtime.shutdown_background();
    Ok(if done? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether no violation was found.
async fn perform(options: &Options) -> Result<bool> {
    match options.task {
        Task::History => run::history(options).await,
        Task::Kills { rounds } => kills::run(options, rounds).await,
        Task::Figures { threads, seconds } => figures::run(options, threads, seconds).await,
    }
}
