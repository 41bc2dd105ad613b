//! [`Issuer`]: an OAuth authorization server with routes that tests set.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Where an authorization server without a path has its metadata.
pub const WELL_KNOWN: &str = "/.well-known/oauth-authorization-server";

/// An OAuth authorization server on the loopback interface, which ends with the test's runtime.
pub struct Issuer {
    /// Its URL, without a path.
    pub base: String,
    routes: Routes,
    requests: Arc<Mutex<Vec<IssuerRequest>>>,
}

/// Method and path to status and body.
type Routes = Arc<Mutex<BTreeMap<String, (u16, Value)>>>;

#[derive(Clone, Debug)]
pub struct IssuerRequest {
    /// Method and path.
    pub line: String,
    /// In lower case.
    pub head: String,
    pub body: String,
}

impl Issuer {
    /// A server without any routes: everything is 404.
    pub async fn bare() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let base = format!("http://{}", listener.local_addr().expect("a listener has an address"));
        let (routes, requests) = (Routes::default(), Arc::default());
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

    /// A server that allows logins.
    pub async fn start() -> Self {
        Self::at(WELL_KNOWN).await
    }

    /// Its metadata.
    pub fn metadata(&self) -> Value {
        let base = &self.base;
        json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "scopes_supported": ["alpha", "beta"],
        })
    }

    /// Sets the answer to a method and path. A status of 302 redirects to the body.
    pub fn set(&self, route: &str, status: u16, body: Value) {
        self.routes.lock().insert(route.to_owned(), (status, body));
    }

    /// Sets the answer of the token endpoint: `token-<number>` with other members.
    pub fn grant(&self, number: u32, other: Value) {
        let mut body = json!({ "access_token": format!("token-{number}"), "token_type": "Bearer" });
        if let (Some(body), Some(other)) = (body.as_object_mut(), other.as_object()) {
            body.extend(other.clone());
        }
        self.set("POST /token", 200, body);
    }

    /// The requests since the last call.
    pub fn requests(&self) -> Vec<IssuerRequest> {
        std::mem::take(&mut self.requests.lock())
    }

    /// The methods and paths of [`requests`](Self::requests).
    pub fn lines(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.line).collect()
    }
}

async fn serve(stream: TcpStream, routes: Routes, requests: Arc<Mutex<Vec<IssuerRequest>>>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let line = head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    if stream.read_exact(&mut body).await.is_err() {
        return;
    }
    let (status, answer) = routes.lock().get(&line).cloned().unwrap_or((404, json!({})));
    requests.lock().push(IssuerRequest { line, head, body: String::from_utf8_lossy(&body).into_owned() });
    let location = answer.as_str().filter(|_| status == 302).map(|to| format!("Location: {to}\r\n"));
    let (location, answer) = (location.unwrap_or_default(), answer.to_string());
    let length = answer.len();
    let text =
        format!("HTTP/1.1 {status} X\r\n{location}Content-Length: {length}\r\nConnection: close\r\n\r\n{answer}");
    _ = stream.write_all(text.as_bytes()).await;
}
