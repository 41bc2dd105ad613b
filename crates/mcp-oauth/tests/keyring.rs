//! Tokens in a real keyring: gnome-keyring on a private D-Bus session. `cargo test -p loomd-mcp-oauth --features keyring`.

#![cfg(feature = "keyring")]

use std::path::Path;
use std::process::Command;

use loomd_config::config_toml::McpCredentialsStore;
use loomd_config::ConfigToml;
use loomd_mcp_oauth::{McpOauth, OauthServer};
use loomd_model::Http;
use loomd_protocol::McpAuthStatus;
use serde_json::json;

/// Set in the process that runs inside the private session.
const INSIDE: &str = "LOOMD_TEST_KEYRING_HOME";

/// An entry as another program that shares the keyring writes it.
const ENTRY: &str = r#"{"server_name":"x","url":"http://127.0.0.1:9/mcp","client_id":"client-1","token_response":{"access_token":"token-1","token_type":"bearer","expires_in":3600,"refresh_token":"refresh-1"},"expires_at":99999999999999}"#;

#[test]
fn tokens_of_another_program_are_found_in_the_keyring_and_removed_from_it() {
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
        .args(["--exact", "tokens_of_another_program_are_found_in_the_keyring_and_removed_from_it", "--nocapture"])
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
    secret_tool(&["store", "--label=test", "service", "Codex MCP Credentials", "username", &name, "target", "default", "application", "rust-keyring"], ENTRY);
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
    });
    assert!(!home.join(".credentials.json").exists());
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
