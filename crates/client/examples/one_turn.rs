//! One turn, with the answer printed as it streams.
//!
//! ```sh
//! cargo run -p loomd-client --example one_turn -- "What is in this folder?"
//! ```
//!
//! `APP_SERVER` is the command of the server; by default loomd with its rehearsal model, which needs no key.

use std::io::Write;

use loomd_client::protocol::ServerNotification;
use loomd_client::{Client, Error, Options, Program};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let question = std::env::args().nth(1).unwrap_or_else(|| "Say hello.".to_owned());
    let client = Client::connect(server(), Options::new("one-turn", "1.0")).await?;
    let thread = client.start_thread(Default::default()).await?;
    let mut turn = thread.send(question).await?;
    while let Some(event) = turn.next().await {
        if let Some(ServerNotification::AgentMessageDelta(piece)) = event?.notification() {
            print!("{}", piece.delta);
            _ = std::io::stdout().flush();
        }
    }
    let done = turn.finish().await?;
    println!();
    for item in &done.items {
        eprintln!("{item:?}");
    }
    client.close().await;
    Ok(())
}

fn server() -> Program {
    let command = std::env::var("APP_SERVER").unwrap_or_else(|_| "loomd app-server -c model_provider=rehearsal".into());
    let mut words = command.split_whitespace();
    Program::new(words.next().unwrap_or("loomd")).args(words)
}
