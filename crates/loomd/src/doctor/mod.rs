//! `loomd doctor`: checks the configuration, the store, the sandbox, the MCP servers and whether the model answers.

mod configured;
mod mcp;
mod model;
mod report;
mod sandbox;
#[cfg(feature = "postgres")]
mod store;

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::cli::{Overrides, TopOverrides};
use crate::run::{self, Color, ModelAccess, Screen};
use crate::setup::{Setup, block_on, close_client};
use report::{DoctorReport, Finding};

#[derive(Args)]
#[command(after_help = "Exit status: 0 if a turn could run, 1 if not.")]
pub struct Doctor {
    /// Skip the check that sends a prompt to the model
    #[arg(long)]
    pub offline: bool,
    /// The database to check, as postgres://USER@HOST:PORT/DATABASE [default: LOOMD_STORE, or `store` in the table
    /// `loomd` of config.toml]
    #[cfg(feature = "postgres")]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    #[command(flatten)]
    pub overrides: Overrides,
}

pub fn run(top: TopOverrides, arguments: Doctor) -> Result<ExitCode> {
    let cwd = run::folder(None)?;
    let mut report = DoctorReport::new(Screen::stdout(Color::Auto));
    let overrides = top.with(arguments.overrides);
    let setup = Setup::new(&overrides)?;
    report.section("Configuration", configured::findings(&setup, &cwd))?;
    #[cfg(feature = "postgres")]
    if let Some(findings) = store::findings(arguments.store, &setup)? {
        report.section("Store", findings)?;
    }
    let has_model = ModelAccess::find(&setup, &cwd) != ModelAccess::Missing;
    let setup = if has_model { run::setup_with_model(overrides, None, &cwd)? } else { setup };
    let servers = mcp::configured(&setup, &cwd);
    block_on(async {
        report.section("Sandbox", sandbox::findings().await)?;
        let (client, events) = setup.connect(run::options("loomd-doctor")).await?;
        if servers.is_empty() {
            // Without a reader, the queue of events would grow.
            drop(events);
        } else {
            report.section("MCP servers", mcp::findings(&client, events, &servers, &cwd).await)?;
        }
        if has_model {
            report.section("Model", model::findings(&client, &cwd, arguments.offline).await)?;
        }
        close_client(&client).await;
        Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}
