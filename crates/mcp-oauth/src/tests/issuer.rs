//! An authorization server with routes that tests set.

use std::collections::BTreeMap;
use std::sync::Arc;

use loomd_protocol::JsonValue;
use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::shared;

pub(crate) const WELL_KNOWN: &str = "/.well-known/oauth-authorization-server";

pub(crate) struct Issuer {
    pub base: String,
    routes: Arc<Mutex<BTreeMap<String, (u16, JsonValue)>>>,
    requests: Arc<Mutex<Vec<Request>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Method and path.
    pub line: String,
    /// In lower case.
    pub head: String,
    pub body: String,
}

impl Request {
    /// A field of a form.
    pub fn field(&self, name: &str) -> Option<String> {
        loomd_oauth::field(&self.body, name)
    }
}

impl Issuer {
    /// A server without any routes: everything is 404.
    pub async fn bare() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (routes, requests) = (shared(BTreeMap::new()), shared(Vec::new()));
        let issuer = Self { base, routes: Arc::clone(&routes), requests: Arc::clone(&requests) };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&routes), Arc::clone(&requests)));
            }
        });
        issuer
    }

    /// A server that allows logins, with its metadata at a place.
    pub async fn at(place: &str) -> Self {
        let issuer = Self::bare().await;
        issuer.set(&format!("GET {place}"), 200, issuer.metadata());
        issuer.set("POST /register", 201, json!({ "client_id": "client-1" }));
        issuer.grant(1, json!({ "expires_in": 3600, "refresh_token": "refresh-1" }));
        issuer
    }

    pub async fn start() -> Self {
        Self::at(WELL_KNOWN).await
    }

    pub fn metadata(&self) -> JsonValue {
        let base = &self.base;
        json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "scopes_supported": ["alpha", "beta"],
        })
    }

    pub fn set(&self, route: &str, status: u16, body: JsonValue) {
        self.routes.lock().insert(route.to_owned(), (status, body));
    }

    /// Sets the answer of the token endpoint: `token-<number>` with other members.
    pub fn grant(&self, number: u32, other: JsonValue) {
        let mut body = json!({ "access_token": format!("token-{number}"), "token_type": "Bearer" });
        body.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        self.set("POST /token", 200, body);
    }

    /// The requests since the last call.
    pub fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.requests.lock())
    }

    pub fn lines(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.line).collect()
    }
}

async fn serve(
    stream: TcpStream,
    routes: Arc<Mutex<BTreeMap<String, (u16, JsonValue)>>>,
    requests: Arc<Mutex<Vec<Request>>>,
) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let line = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
    let head = head.to_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |it| it.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let (status, answer) = routes.lock().get(&line).cloned().unwrap_or((404, json!({})));
    requests.lock().push(Request { line, head, body: String::from_utf8(body).unwrap() });
    let location = if status == 302 { format!("Location: {}\r\n", answer.as_str().unwrap()) } else { String::new() };
    let answer = answer.to_string();
    let text = format!(
        "HTTP/1.1 {status} X\r\n{location}Content-Length: {}\r\nConnection: close\r\n\r\n{answer}",
        answer.len()
    );
    _ = stream.write_all(text.as_bytes()).await;
}
