//! The commands `run`, `exec`, `threads`, `mcp` and `doctor`.

mod attach;
mod chat;
mod configuration;
mod doctor;
mod exec;
mod mcp;
mod model_choice;
mod prompts;
mod pty;
mod refusals;
mod run;
mod sdk;
mod sdk_python;
mod skills;
mod terminal;
mod threads;
mod wink;

use loomd_testkit::{Home, ScriptedModel};
use tokio::process::Command;

use crate::common::loomd;

/// A home with sandbox mode `danger-full-access`.
fn home(model: &ScriptedModel) -> Home {
    Home::new(model).with(r#"sandbox_mode = "danger-full-access""#)
}

/// The program without environment variables that would change its behaviour.
fn command(home: &Home, args: &[&str]) -> Command {
    let mut command = loomd(home);
    command.args(args).env("RUST_LOG", "error");
    for name in ["CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "NO_COLOR"] {
        command.env_remove(name);
    }
    command
}
