//! A bot for chat rooms. Reads lines of the form `room: message` and prints `room: answer`.
//!
//! Every room has a thread of its own, which is resumed after a restart. Commands that need approval run only if they
//! are on a list.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use loomd_client::protocol::{
    AskForApproval, CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams, ThreadStartParams,
};
use loomd_client::{Client, Error, Handler, Options, Program, Thread, resume};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};

const ALLOWED: &[&str] = &["date", "./test.sh"];

struct ListedCommands;

impl Handler for ListedCommands {
    async fn approve_command(
        &self,
        request: CommandExecutionRequestApprovalParams,
    ) -> CommandExecutionApprovalDecision {
        // A shell with the script as its last argument, such as: /bin/bash -lc ./test.sh
        let command = request.command.unwrap_or_default();
        let script = command.split_once(" -lc ").map(|(_, script)| script.trim_matches('\''));
        match script {
            Some(script) if ALLOWED.contains(&script) => CommandExecutionApprovalDecision::Accept,
            _ => CommandExecutionApprovalDecision::Decline,
        }
    }
}

/// Answers every line of `input` until it ends. `rooms` is the file with the thread of each room.
pub async fn run(
    server: Program,
    rooms: &Path,
    input: impl AsyncBufRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::new("bot", "1.0").handler(ListedCommands).approval_policy(AskForApproval::Untrusted);
    let client = Client::connect(server, options).await?;
    let mut ids: HashMap<String, String> = match fs::read(rooms) {
        Ok(stored) => serde_json::from_slice(&stored)?,
        Err(_) => HashMap::new(),
    };
    let mut threads: HashMap<String, Thread> = HashMap::new();
    let mut lines = input.lines();
    while let Some(line) = lines.next_line().await? {
        let Some((room, text)) = line.split_once(": ") else { continue };
        if !threads.contains_key(room) {
            let thread = match ids.get(room) {
                Some(id) => client.resume_thread(resume(id)).await?,
                None => client.start_thread(ThreadStartParams::default()).await?,
            };
            ids.insert(room.to_owned(), thread.id().to_owned());
            fs::write(rooms, serde_json::to_vec(&ids)?)?;
            threads.insert(room.to_owned(), thread);
        }
        let answer = match threads[room].run(text).await {
            Ok(done) => done.agent_message.unwrap_or_default(),
            Err(Error::TurnFailed(failed)) => {
                format!("That failed: {}", failed.turn.error.map(|error| error.message).unwrap_or_default())
            }
            Err(error) => return Err(error.into()),
        };
        output.write_all(format!("{room}: {answer}\n").as_bytes()).await?;
        output.flush().await?;
    }
    client.close().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let server = match arguments.next() {
        Some(program) => Program::new(program).args(arguments),
        None => Program::new("loomd").arg("app-server"),
    };
    run(server, Path::new("rooms.json"), BufReader::new(tokio::io::stdin()), tokio::io::stdout()).await
}
