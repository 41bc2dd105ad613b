//! A collector of telemetry: an HTTP server that keeps every request.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::TIMEOUT;

/// A request that was posted.
#[derive(Debug)]
pub struct Posted {
    pub path: String,
    /// Lower-case names.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Posted {
    /// The value of a header; its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// The body.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }
}

/// A running collector.
pub struct Collector {
    pub url: String,
    posted: mpsc::UnboundedReceiver<Posted>,
    statuses: Arc<Mutex<VecDeque<u16>>>,
}

impl Collector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("a bound listener"));
        let (sender, posted) = mpsc::unbounded_channel();
        let statuses: Arc<Mutex<VecDeque<u16>>> = Arc::default();
        let answers = Arc::clone(&statuses);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, sender.clone(), Arc::clone(&answers)));
            }
        });
        Self { url, posted, statuses }
    }

    /// The status of the next request; 200 after all of them.
    pub fn answer(&self, status: u16) {
        self.statuses.lock().push_back(status);
    }

    /// The next request.
    pub async fn next(&mut self) -> Posted {
        let next = tokio::time::timeout(TIMEOUT, self.posted.recv()).await;
        next.expect("a request in time").expect("the collector runs as long as this exists")
    }

    /// The next request that has arrived.
    pub fn try_next(&mut self) -> Option<Posted> {
        self.posted.try_recv().ok()
    }
}

/// Answers the requests of a connection until it ends or sends something that is no request.
async fn serve(stream: TcpStream, posted: mpsc::UnboundedSender<Posted>, statuses: Arc<Mutex<VecDeque<u16>>>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let status = statuses.lock().pop_front().unwrap_or(200);
        _ = posted.send(request);
        let answer = format!("HTTP/1.1 {status} -\r\ncontent-length: 2\r\n\r\n{{}}");
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Posted> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Posted { path, headers, body })
}
