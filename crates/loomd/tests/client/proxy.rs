//! A TCP proxy whose connections can be cut, to simulate network failures.

use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

pub struct Proxy {
    port: u16,
    connections: Arc<Mutex<JoinSet<()>>>,
    listener: JoinHandle<()>,
}

impl Proxy {
    pub async fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port is free");
        let port = listener.local_addr().expect("a bound listener has an address").port();
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let open = Arc::clone(&connections);
        let listener = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                open.lock().unwrap().spawn(async move {
                    if let Ok(mut server) = TcpStream::connect(("127.0.0.1", server)).await {
                        _ = copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
        });
        Self { port, connections, listener }
    }

    pub fn url(&self) -> String {
        format!("ws://127.0.0.1:{}", self.port)
    }

    /// Closes every open connection.
    pub fn cut(&self) {
        self.connections.lock().unwrap().abort_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listener.abort();
    }
}
