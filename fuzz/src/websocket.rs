//! Any bytes after the upgrade of a websocket: the server answers or hangs up, and never hangs itself.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::serve::Listener;
use loomd_config::{LoadRequest, Overrides, load};
use loomd_protocol::AbsolutePathBuf;
use loomd_server::{App, ConfigSources, serve_on};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const UPGRADE: &[u8] = b"GET / HTTP/1.1\r\nHost: fuzz\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// The first byte says whether the upgrade is part of the input or stands before it.
pub fn run(data: &[u8]) {
    let (with_upgrade, data) = match data.split_first() {
        Some((first, rest)) => (first % 4 != 0, rest),
        None => return,
    };
    runtime().block_on(async {
        let (clients, accepted) = mpsc::channel(1);
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve_on(MemoryFiles(accepted), app(), stop.clone()));
        let (client, server) = duplex(1 << 20);
        clients.send(server).await.expect("the server listens");
        let talk = async {
            let (mut from, mut to) = tokio::io::split(client);
            let write = async {
                if with_upgrade {
                    _ = to.write_all(UPGRADE).await;
                }
                _ = to.write_all(data).await;
                _ = to.shutdown().await;
            };
            let mut received = Vec::new();
            let (_, _) = tokio::join!(write, from.read_to_end(&mut received));
        };
        tokio::time::timeout(Duration::from_secs(60), talk).await.expect("the server hangs up");
        stop.cancel();
        serving.await.expect("the server stops");
    });
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Builder::new_current_thread().enable_all().build().expect("a runtime"))
}

fn app() -> Arc<App> {
    static APP: OnceLock<Arc<App>> = OnceLock::new();
    Arc::clone(APP.get_or_init(|| {
        let home = AbsolutePathBuf::new("/nonexistent").expect("absolute");
        let flags = Overrides::default();
        let config = load(&LoadRequest::new(&home, &flags)).expect("defaults");
        let sources = ConfigSources { home, system_file: None, user_home: None, flags, live: Default::default() };
        Arc::new(App::new(sources, &config, Vec::new()))
    }))
}

/// Connections that are made in memory.
struct MemoryFiles(mpsc::Receiver<DuplexStream>);

impl Listener for MemoryFiles {
    type Io = DuplexStream;
    type Addr = ();

    async fn accept(&mut self) -> (DuplexStream, ()) {
        match self.0.recv().await {
            Some(stream) => (stream, ()),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}
