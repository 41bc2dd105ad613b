//! Tokens in a real keyring: gnome-keyring on a private D-Bus session. `cargo test -p loomd-mcp-oauth --features keyring`.

#![cfg(feature = "keyring")]

use std::path::Path;
use std::process::Command;

use loomd_config::ConfigToml;
use loomd_config::config_toml::McpCredentialsStore;
use loomd_mcp_oauth::{CallbackSettings, McpOauth, OauthServer};
use loomd_model::Http;
use loomd_protocol::McpAuthStatus;
use loomd_testkit::Issuer;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

/// Set in the process that runs inside the private session.
const INSIDE: &str = "LOOMD_TEST_KEYRING_HOME";

/// An entry as another program that shares the keyring writes it.
const ENTRY: &str = r#"{"server_name":"x","url":"http://127.0.0.1:9/mcp","client_id":"client-1","token_response":{"access_token":"token-1","token_type":"bearer","expires_in":3600,"refresh_token":"refresh-1"},"expires_at":99999999999999}"#;

#[test]
fn tokens_are_shared_with_other_programs_through_the_keyring() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    for program in ["dbus-run-session", "gnome-keyring-daemon", "secret-tool"] {
        if !exists(program) {
            return eprintln!("skipped: {program} is not installed here");
        }
    }
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| {
        let folder = place.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        folder
    };
    let this = std::env::current_exe().unwrap();
    let script = "printf pw | gnome-keyring-daemon --unlock --components=secrets >/dev/null && exec \"$@\"";
    let ran = Command::new("dbus-run-session")
        .args(["--", "sh", "-c", script, "sh"])
        .arg(this)
        .args(["--exact", "tokens_are_shared_with_other_programs_through_the_keyring", "--nocapture"])
        .env(INSIDE, place.path().join("home"))
        .env("HOME", at("user"))
        .env("XDG_RUNTIME_DIR", at("run"))
        .env("XDG_DATA_HOME", at("data"))
        .env_remove("DBUS_SESSION_BUS_ADDRESS")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}\n{err}");
}

fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

fn inside() {
    let home = std::path::PathBuf::from(std::env::var_os(INSIDE).unwrap());
    std::fs::create_dir(&home).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let config = serde_json::from_value(json!({ "url": "http://127.0.0.1:9/mcp" })).unwrap();
    let server = OauthServer::configured("x", &config, &|_| None).unwrap();
    let name = "x|".to_owned() + &key(&server);
    secret_tool(
        &[
            "store",
            "--label=test",
            "service",
            "Codex MCP Credentials",
            "username",
            &name,
            "target",
            "default",
            "application",
            "rust-keyring",
        ],
        ENTRY,
    );
    runtime.block_on(async {
        for kind in [McpCredentialsStore::Keyring, McpCredentialsStore::Auto] {
            assert_eq!(open(&home, kind).bearer(&server).await.unwrap().unwrap().reveal(), "token-1", "{kind:?}");
        }
        assert_eq!(open(&home, McpCredentialsStore::File).bearer(&server).await.unwrap(), None);
        let oauth = open(&home, McpCredentialsStore::Keyring);
        assert_eq!(oauth.status(&server).await, McpAuthStatus::OAuth);
        assert!(oauth.logout(&server).await.unwrap());
        assert!(!oauth.logout(&server).await.unwrap());
        assert_eq!(oauth.bearer(&server).await.unwrap(), None);
        log_in(&oauth).await;
    });
    assert!(!home.join(".credentials.json").exists());
}

/// A login whose tokens end up in the keyring, in the form that other programs read.
async fn log_in(oauth: &McpOauth) {
    let issuer = Issuer::start().await;
    let config = serde_json::from_value(json!({ "url": format!("{}/mcp", issuer.base) })).unwrap();
    let server = OauthServer::configured("y", &config, &|_| None).unwrap();
    let login = oauth.login(&server, None, None, &CallbackSettings::default()).await.unwrap();
    let field = |name| loomd_oauth::field(login.authorization_url.split_once('?').unwrap().1, name).unwrap();
    let (redirect, state) = (field("redirect_uri"), field("state"));
    let completed = tokio::spawn(login.completed());
    let authority = redirect.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let mut browser = tokio::net::TcpStream::connect(authority).await.unwrap();
    let request = format!("GET /callback?code=1&state={state} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    browser.write_all(request.as_bytes()).await.unwrap();
    completed.await.unwrap().unwrap();
    assert_eq!(oauth.bearer(&server).await.unwrap().unwrap().reveal(), "token-1");
    let name = "y|".to_owned() + &key(&server);
    let arguments = ["lookup", "service", "Codex MCP Credentials", "username", &name];
    let found = Command::new("secret-tool").args(arguments).output().unwrap().stdout;
    let entry: serde_json::Value = serde_json::from_slice(&found).unwrap();
    assert_eq!((&entry["server_name"], &entry["url"]), (&json!("y"), &json!(server.url)));
    assert_eq!(entry["token_response"]["refresh_token"], "refresh-1");
    assert!(oauth.logout(&server).await.unwrap());
}

fn open(home: &Path, kind: McpCredentialsStore) -> McpOauth {
    let config = ConfigToml { mcp_oauth_credentials_store: Some(kind), ..ConfigToml::default() };
    McpOauth::new(home, &config, Http::new(&|_| None), |_| None)
}

/// The last part of the name of an entry.
fn key(server: &OauthServer) -> String {
    use sha2::Digest as _;
    let identity = json!({ "type": "http", "url": server.url, "headers": {} }).to_string();
    sha2::Sha256::digest(identity)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn secret_tool(arguments: &[&str], secret: &str) {
    use std::io::Write as _;
    let mut child = Command::new("secret-tool").args(arguments).stdin(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(secret.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}
