//! `loomd run`: one turn from the terminal, as a client of a server in this process or of a running one.

mod args;
mod connection;
mod drive;
mod form;
mod handler;
mod input;
mod keyboard;
mod model_access;
mod open;
mod providers;
mod question;
mod screen;
mod turn;
mod view;

use std::process::ExitCode;

use anyhow::Result;

pub use args::{EXIT_STATUS, Run, Sandbox, TurnArgs};
pub use connection::Connection;
pub use drive::{TurnContext, drive, stop_commands};
pub use handler::{Questions, prompt_handler};
pub use input::{Prompt, folder, images, input, output_schema, prompt, text};
pub use keyboard::Keyboard;
pub use model_access::{ModelAccess, setup_with_model};
pub use open::{ThreadChoice, ThreadRequest, TurnTask};
pub use question::{Answer, Question};
pub use screen::{Color, Screen};
pub use turn::{Remarks, Task, options, prepare, run_turn};
pub use view::{NoView, TextView, View};

use crate::cli::TopOverrides;

pub fn run(top: TopOverrides, arguments: Run) -> Result<ExitCode> {
    let Run { prompt: words, resume, image, output_schema: schema, ephemeral, turn } = arguments;
    let task = Task::Answer {
        output_schema: output_schema(schema.as_deref())?,
        images: images(&image)?,
        prompt: prompt(&words)?,
    };
    let choice = match resume {
        Some(name) => ThreadChoice::Resume(name),
        None => ThreadChoice::New { ephemeral },
    };
    run_turn(top, turn, choice, task, Remarks::default())
}
