//! `loomd mcp`: list, get, add, remove, login and logout.

use std::process::Stdio;

use loomd_testkit::{Home, Issuer, TIMEOUT};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;

use super::command;
use crate::common::{RunResult, output};
use crate::mcp_sharing::agree;

async fn mcp(home: &Home, args: &[&str]) -> RunResult {
    output(&mut command(home, &[&["mcp"], args].concat())).await
}

/// Must succeed; returns its stdout.
async fn done(home: &Home, args: &[&str]) -> String {
    let ended = mcp(home, args).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{args:?}");
    ended.stdout
}

/// Must fail; returns its exit code and stderr.
async fn fails(home: &Home, args: &[&str]) -> (Option<i32>, String) {
    let ended = mcp(home, args).await;
    assert_eq!(ended.stdout, "", "{args:?}");
    (ended.code, ended.stderr)
}

fn config(home: &Home) -> String {
    std::fs::read_to_string(home.path().join("config.toml")).unwrap()
}

#[tokio::test]
async fn servers_are_added_listed_shown_and_removed_without_losing_comments() {
    let home = Home::empty();
    assert!(done(&home, &["list"]).await.starts_with("No MCP servers configured yet."));
    assert_eq!(done(&home, &["list", "--json"]).await, "[]\n");
    let before = "# mine\nmodel = \"x\" # keep\n\n[mcp_servers.old] # this too\ncommand = \"y\"\n";
    home.write("config.toml", before);
    let added = done(&home, &["add", "files", "--env", "A=1", "--env", "B=x=y", "--", "npx", "-y", "a b"]).await;
    assert_eq!(added, "Added MCP server 'files'.\n");
    done(&home, &["add", "web", "--url", "http://127.0.0.1:9/mcp", "--bearer-token-env-var", "TOK"]).await;
    assert!(config(&home).starts_with(before), "{}", config(&home));

    let list = done(&home, &["list"]).await;
    let rows: Vec<Vec<&str>> =
        list.lines().map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()).collect();
    assert_eq!(rows[1], ["files", "npx", "-y a b", "A=*****, B=*****", "-", "enabled", "Unsupported"], "{list}");
    assert_eq!(rows[2], ["old", "y", "-", "-", "-", "enabled", "Unsupported"], "{list}");
    assert_eq!(rows[5], ["web", "http://127.0.0.1:9/mcp", "TOK", "enabled", "Bearer token"], "{list}");
    let json: Value = serde_json::from_str(&done(&home, &["list", "--json"]).await).unwrap();
    let files = json!({
        "name": "files", "enabled": true, "disabled_reason": null,
        "transport": {
            "type": "stdio", "command": "npx", "args": ["-y", "a b"], "env": { "A": "1", "B": "x=y" }, "env_vars": [],
            "cwd": null,
        },
        "startup_timeout_sec": null, "tool_timeout_sec": null, "auth_status": "unsupported",
    });
    assert_eq!(json[0], files);
    assert_eq!(json[2]["auth_status"], "bearer_token");

    let shown = done(&home, &["get", "files"]).await;
    assert!(shown.starts_with("files\n  enabled: true\n  transport: stdio\n  command: npx\n"), "{shown}");
    assert!(!shown.contains("x=y"), "values are hidden: {shown}");
    let json: Value = serde_json::from_str(&done(&home, &["get", "web", "--json"]).await).unwrap();
    assert_eq!(json["transport"]["bearer_token_env_var"], "TOK");

    assert_eq!(done(&home, &["remove", "files"]).await, "Removed MCP server 'files'.\n");
    assert_eq!(done(&home, &["remove", "web"]).await, "Removed MCP server 'web'.\n");
    assert_eq!(config(&home), before);
    assert_eq!(done(&home, &["remove", "web"]).await, "No MCP server named 'web' found.\n");
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_with_its_reason() {
    let home = Home::empty();
    home.write("config.toml", "[mcp_servers.local]\ncommand = \"y\"\n");
    let before = config(&home);
    for (args, code, text) in [
        (&["get", "zzz"][..], 1, "error: No MCP server named 'zzz' found."),
        (&["login", "zzz"], 1, "error: No MCP server named 'zzz' found."),
        (&["logout", "zzz"], 1, "error: No MCP server named 'zzz' found."),
        (&["login", "local"], 1, "error: OAuth login is only supported for streamable HTTP servers."),
        (&["logout", "local"], 1, "error: OAuth logout is only supported for streamable HTTP servers."),
        (&["add", "bad name", "--", "x"], 2, "error: invalid server name 'bad name': "),
        (&["add", "x", "--url", "ftp://y"], 2, "error: invalid URL 'ftp://y': expected http:// or https://"),
        (&["add", "none"], 2, "error: the following required arguments were not provided:"),
        (&["add", "x", "--url", "http://y", "--", "z"], 2, "error: the argument '--url <URL>' cannot be used with"),
        (&["add", "x", "--env", "A", "--", "z"], 2, "error: invalid value 'A' for '--env <KEY=VALUE>'"),
        (&["add", "x", "--bearer-token-env-var", "A", "--", "z"], 2, "error: the argument '--bearer-token-env-var"),
    ] {
        let (found, stderr) = fails(&home, args).await;
        assert!(found == Some(code) && stderr.starts_with(text), "{args:?}: {found:?} {stderr}");
    }
    assert_eq!(config(&home), before);
    home.write("config.toml", "model = 5");
    let (code, stderr) = fails(&home, &["list"]).await;
    assert!(code == Some(1) && stderr.contains("config.toml:1:9"), "{stderr}");
}

#[tokio::test]
async fn a_login_in_the_terminal_stores_tokens_that_a_logout_removes() {
    let (home, issuer) = (Home::empty().with(r#"mcp_oauth_credentials_store = "file""#), Issuer::start().await);
    let url = format!("{}/mcp", issuer.base);
    let added = done(&home, &["add", "web", "--url", &url]).await;
    assert_eq!(added, "Added MCP server 'web'.\nIt supports OAuth; log in with `loomd mcp login web`.\n");
    let status = async || {
        let json: Value = serde_json::from_str(&done(&home, &["list", "--json"]).await).unwrap();
        json[0]["auth_status"].clone()
    };
    assert_eq!(status().await, "not_logged_in");
    let mut login = command(&home, &["mcp", "login", "web", "--scopes", "a,b"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(login.stdout.take().unwrap()).lines();
    let mut next = async || timeout(TIMEOUT, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert_eq!(next().await, "Authorize `web` by opening this URL in your browser:");
    let authorization = next().await;
    assert!(authorization.contains("&scope=a%20b"), "{authorization}");
    agree(&authorization).await;
    assert_eq!((next().await, next().await), (String::new(), "Logged in to MCP server 'web'.".into()));
    assert!(timeout(TIMEOUT, login.wait()).await.unwrap().unwrap().success());
    assert_eq!(status().await, "o_auth");
    assert_eq!(done(&home, &["logout", "web"]).await, "Removed OAuth credentials for 'web'.\n");
    assert_eq!(done(&home, &["logout", "web"]).await, "No OAuth credentials stored for 'web'.\n");
    assert_eq!(status().await, "not_logged_in");
}
