//! `loomd` alone at a terminal: a chat with the agent, as a client of a server in this process.
//!
//! [`session`] is the loop that owns all state. [`surface`] is the terminal, [`frame`] composes what is drawn at its
//! end, [`commands`] parses lines that begin with `/`, [`requests`] has the requests behind them. Turns are rendered by
//! [`show`](crate::show), and approvals asked by the handler of [`run`](crate::run).

mod activity;
mod attachments;
mod commands;
mod completion;
mod frame;
mod history_file;
mod keyboard;
mod picker;
mod requests;
mod session;
mod settings;
mod surface;

use std::io::{IsTerminal, stderr, stdin, stdout};
use std::process::ExitCode;

use anyhow::Result;
use loomd_client::protocol::ThreadStartParams;

use crate::cli::{Overrides, TopOverrides};
use crate::logging;
use crate::run::{folder, options, prompt_handler, setup_with_model};
use crate::setup::{close_client, runtime};
use history_file::HistoryFile;
use session::Session;
use surface::Surface;

/// Whether a person can chat: stdin and stdout are a terminal.
pub fn is_possible() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

pub fn run(top: TopOverrides) -> Result<ExitCode> {
    let cwd = folder(top.cd())?;
    let setup = setup_with_model(top.with(Overrides::default()), None, &cwd)?;
    let history = HistoryFile::new(&setup.sources.home, setup.start.loaded.config.history.as_ref());
    // Log lines would be written into the chat.
    if !stderr().is_terminal() {
        logging::init();
    }
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let (handler, questions) = prompt_handler();
        let (client, events) = setup.connect(options("loomd-chat").handler(handler)).await?;
        let params = ThreadStartParams { cwd: Some(cwd), ..ThreadStartParams::default() };
        let thread = client.start_thread(params).await?;
        let surface = Surface::open()?;
        let ended = Session::new(thread, surface, history).run(events, questions).await;
        if !matches!(ended, Ok(true)) {
            close_client(&client).await;
        }
        ended
    });
    runtime.shutdown_background();
    done.map(|_| ExitCode::SUCCESS)
}
