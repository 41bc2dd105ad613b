//! Logins and refreshes against an authorization server of these tests.

mod login;
mod refresh;

use std::path::Path;

use loomd_config::config_toml::{McpCredentialsStore, McpServer};
use loomd_model::Http;
use loomd_protocol::JsonValue;
pub(crate) use loomd_testkit::Issuer;
use loomd_testkit::IssuerRequest;
use tempfile::TempDir;

use crate::{McpOauth, OauthServer};

/// A server `x` with nothing but a URL.
pub(crate) fn server(url: &str) -> OauthServer {
    configured(url, "{}")
}

/// A server `x` with the members of a JSON object as its settings.
fn configured(url: &str, settings: &str) -> OauthServer {
    let mut config: JsonValue = serde_json::from_str(settings).unwrap();
    config["url"] = url.into();
    let config: McpServer = serde_json::from_value(config).unwrap();
    OauthServer::configured("x", &config, &|_| None).unwrap()
}

/// A home and what is stored in it.
pub(crate) struct Fixture {
    home: TempDir,
    pub oauth: McpOauth,
}

fn open(home: &Path) -> McpOauth {
    McpOauth::with_keyring(home, McpCredentialsStore::File, Http::new(&|_| None), |_| None, None)
}

impl Fixture {
    pub fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let oauth = open(home.path());
        Self { home, oauth }
    }

    /// Another process with the same home.
    fn other(&self) -> McpOauth {
        open(self.home.path())
    }

    /// The stored entries.
    fn stored(&self) -> JsonValue {
        let read = std::fs::read(self.home.path().join(".credentials.json"));
        read.map_or(JsonValue::Null, |bytes| serde_json::from_slice(&bytes).unwrap())
    }

    pub fn store(&self, server: &OauthServer, entry: JsonValue) {
        let mut whole = serde_json::json!({
            "server_name": "x", "server_url": server.url, "client_id": "client-0", "access_token": "token-0",
            "expires_at": null, "refresh_token": "refresh-0", "scopes": [],
        });
        whole.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
        let text = serde_json::json!({ server.key(): whole }).to_string();
        std::fs::write(self.home.path().join(".credentials.json"), text).unwrap();
    }

    async fn bearer(&self, server: &OauthServer) -> Result<Option<String>, String> {
        let token = self.oauth.bearer(server).await.map_err(|error| error.to_string())?;
        Ok(token.map(|token| token.reveal().to_owned()))
    }
}

/// What a browser sees at a URL: status and text.
async fn browse(url: &str) -> (u16, String) {
    browse_with(url, "").await
}

async fn browse_with(url: &str, headers: &str) -> (u16, String) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let (authority, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = tokio::net::TcpStream::connect(authority).await.unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {authority}\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// The field of a URL's query.
fn query(url: &str, name: &str) -> Option<String> {
    loomd_oauth::field(url.split_once('?').unwrap().1, name)
}

/// A field of a form.
fn form(request: &IssuerRequest, name: &str) -> Option<String> {
    loomd_oauth::field(&request.body, name)
}
