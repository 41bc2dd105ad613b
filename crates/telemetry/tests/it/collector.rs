//! A collector: an HTTP server that keeps every request.

use std::collections::VecDeque;
use std::sync::Arc;

use loomd_config::config_toml::ConfigToml;
use loomd_telemetry::{Settings, Telemetry};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};

/// A request that was posted.
#[derive(Debug)]
pub struct Posted {
    pub path: String,
    /// Lower-case names.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Posted {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

pub struct Collector {
    pub url: String,
    posted: mpsc::UnboundedReceiver<Posted>,
    statuses: Arc<Mutex<VecDeque<u16>>>,
}

impl Collector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
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
    pub async fn answer(&self, status: u16) {
        self.statuses.lock().await.push_back(status);
    }

    pub async fn next(&mut self) -> Posted {
        self.posted.recv().await.unwrap()
    }

    pub fn try_next(&mut self) -> Option<Posted> {
        self.posted.try_recv().ok()
    }
}

async fn serve(stream: TcpStream, posted: mpsc::UnboundedSender<Posted>, statuses: Arc<Mutex<VecDeque<u16>>>) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        let path = line.split(' ').nth(1).unwrap().to_owned();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length").unwrap().1.parse().unwrap();
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        let status = statuses.lock().await.pop_front().unwrap_or(200);
        _ = posted.send(Posted { path, headers, body });
        let answer = format!("HTTP/1.1 {status} -\r\ncontent-length: 2\r\n\r\n{{}}");
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

/// Telemetry with `[otel]` as written, where `URL` is the collector's.
pub fn telemetry(collector: &Collector, otel: &str) -> Telemetry {
    Telemetry::start(settings(&otel.replace("URL", &collector.url), &|_| None).unwrap())
}

pub fn settings(otel: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Settings, loomd_telemetry::SettingsError> {
    let config: ConfigToml = toml::from_str(otel).unwrap();
    Settings::new(&config, "1.2.3", env)
}
