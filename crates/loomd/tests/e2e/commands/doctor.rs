//! `loomd doctor`: findings and exit status.

use loomd_testkit::model::{error, message};
use loomd_testkit::{Home, Issuer, ScriptedModel};
use serde_json::json;

use super::{command, home};
use crate::common::output;

/// The exit code and the output.
async fn doctor(home: &Home, args: &[&str]) -> (Option<i32>, String) {
    let ended = output(&mut command(home, &[&["doctor"], args].concat())).await;
    assert_eq!(ended.stderr, "");
    (ended.code, ended.stdout)
}

fn check(report: &str, lines: &[&str]) {
    for line in lines {
        assert!(report.lines().any(|known| known.trim_start().starts_with(line)), "no {line:?} in\n{report}");
    }
}

#[tokio::test]
async fn a_model_that_answers_passes() {
    let model = ScriptedModel::start().await;
    model.reply(message("ready"));
    let (code, report) = doctor(&home(&model), &[]).await;
    check(
        &report,
        &[
            "Configuration",
            "✓ provider scripted",
            "Sandbox",
            "Model",
            "✓ scripted-model of scripted",
            "✓ it answers in ",
        ],
    );
    // Without a usable sandbox the report has a failure, too.
    assert_eq!(code, Some(i32::from(report.contains('✗'))), "{report}");
}

#[tokio::test]
async fn a_failing_model_and_a_missing_key_are_reported() {
    let model = ScriptedModel::start().await;
    model.reply(error(401, "invalid", "wrong key"));
    let (code, report) = doctor(&home(&model), &[]).await;
    check(&report, &["✗ the turn failed: "]);
    assert_eq!(code, Some(1), "{report}");

    let home = home(&model).with(r#"model_providers.scripted.env_key = "NO_SUCH_KEY_FOR_A_TEST""#);
    let (code, report) = doctor(&home, &["--offline"]).await;
    check(
        &report,
        &["✗ provider scripted needs NO_SUCH_KEY_FOR_A_TEST in the environment", "! not checked (--offline)"],
    );
    assert_eq!(code, Some(1), "{report}");
}

#[tokio::test]
async fn an_invalid_configuration_is_reported_with_its_position() {
    let home = Home::empty();
    home.write("config.toml", "model = 5");
    let (code, report) = doctor(&home, &["--offline"]).await;
    check(&report, &[&format!("✗ {}:1:9: ", home.path().join("config.toml").display())]);
    assert_eq!(code, Some(1), "{report}");
}

#[tokio::test]
async fn each_mcp_server_is_started_and_what_is_wrong_with_it_is_named() {
    let (model, issuer) = (ScriptedModel::start().await, Issuer::start().await);
    // The issuer's own URL is not an MCP server; without a login it refuses.
    issuer.set("POST /mcp", 401, json!({}));
    let server = r#"
        while IFS= read -r line; do
          id=${line#*'"id":'}; id=${id%%,*}
          case "$line" in
            *'"method":"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
            *'"method":"tools/list"'*) result='{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}]}' ;;
            *) continue ;;
          esac
          printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
        done"#;
    let home = home(&model).with(r#"mcp_oauth_credentials_store = "file""#);
    home.write("server.sh", server);
    let path = home.path().join("server.sh");
    let home = home.with(&format!(
        "[mcp_servers]\ngood = {{ command = 'sh', args = [{path:?}] }}\nmissing = {{ command = '/no/such/program' }}\n\
         off = {{ command = '/no/such/program', enabled = false }}\nweb = {{ url = '{}/mcp' }}",
        issuer.base
    ));
    let (code, report) = doctor(&home, &["--offline"]).await;
    check(
        &report,
        &[
            "MCP servers",
            "✓ good: 2 tools",
            "! missing: MCP client for `missing` failed to start: MCP startup failed: ",
            "✓ off: disabled",
            "! web: not logged in; run `loomd mcp login web`",
        ],
    );
    assert_eq!(code, Some(i32::from(report.contains('✗'))), "{report}");
    let home = home.with("mcp_servers.missing.required = true");
    let (code, report) = doctor(&home, &["--offline"]).await;
    check(&report, &["✗ cannot start a thread: "]);
    assert_eq!(code, Some(1), "{report}");
}
