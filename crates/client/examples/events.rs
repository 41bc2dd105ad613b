//! Prints the events of a server that other clients use, one line each.
//!
//! ```sh
//! loomd app-server --listen ws://127.0.0.1:4500 &
//! cargo run -p loomd-client --example events -- ws://127.0.0.1:4500
//! ```
//!
//! `TOKEN` is the bearer token, for a server with authentication. A lost connection is made again.

use loomd_client::{Backoff, Client, Error, EventKind, Options, Websocket};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "ws://127.0.0.1:4500".to_owned());
    let mut endpoint = Websocket::new(url);
    if let Ok(token) = std::env::var("TOKEN") {
        endpoint = endpoint.bearer(token);
    }
    let options = Options::new("events", "1.0").reconnect(Backoff { attempts: 100, ..Backoff::default() });
    let (client, mut events) = Client::open(endpoint, options).await?;
    eprintln!("connected to {}", client.server().user_agent);
    while let Some(event) = events.next().await {
        let event = event?;
        let thread = event.thread_id.as_deref().unwrap_or("-");
        match &event.kind {
            EventKind::Notification(_) | EventKind::Other { .. } => {
                println!("{thread} {}", event.method().unwrap_or_default());
            }
            EventKind::Lost(ended) => println!("- lost: {ended}"),
            EventKind::Reconnected => println!("- reconnected"),
            other => println!("{thread} {other:?}"),
        }
    }
    Ok(())
}
