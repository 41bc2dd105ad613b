//! codex-sdk-python, a client of the app-server in Python: every method of it, with this program as the server. Skipped if
//! it is not installed: `python3 -m venv target/sdk-python && target/sdk-python/bin/pip install codex-sdk-python==0.117.0`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loomd_testkit::model::{message, streamed};
use loomd_testkit::{Gate, ScriptedModel};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

use super::home;
use crate::common::{LOOMD, in_time};

/// What the script reports.
#[derive(Deserialize)]
struct Report {
    skills: Vec<String>,
    effective: Value,
    plugins: Vec<String>,
    session: String,
    /// Methods that were not called.
    missed: Vec<String>,
    /// The errors of methods.
    failed: BTreeMap<String, String>,
}

/// The interpreter with the SDK, or `None` with a line on stderr.
fn python() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let python = target.join("sdk-python/bin/python");
    if !python.exists() {
        eprintln!("skipped: no SDK at {}", python.display());
        return None;
    }
    Some(python)
}

#[tokio::test]
async fn every_method_of_the_python_sdk_is_answered() {
    let Some(python) = python() else { return };
    let model = ScriptedModel::start().await;
    // The third turn runs until it is interrupted.
    model.reply(message("done")).reply(message("done")).reply(streamed(&["It will be long"]).wait(&Gate::new()));
    for _ in 0..9 {
        model.reply(message("done"));
    }
    let home = home(&model);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/commands/sdk_python.py");
    let mut command = Command::new(python);
    command.arg(script).arg(LOOMD).arg(home.path()).arg(home.user()).arg(home.work()).kill_on_drop(true);
    let output = in_time("the end of the script", command.output()).await.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();

    assert_eq!(report.missed, [""; 0]);
    assert_eq!((&*report.skills, &*report.plugins), (&["release-notes".into()][..], &["tools@shelf".into()][..]));
    assert_eq!((report.effective, &*report.session), (json!({ "effectiveEnabled": false }), "turn/completed"));
    // What the script cannot have: methods that the protocol has dropped, a member that it has renamed, an account, a server.
    let expected = [
        ("account_rate_limits_read", "codex account authentication required"),
        ("experimental_feature_enablement_set", "missing field `enablement`"),
        ("mcp_server_oauth_login", "No MCP server named 'missing' found"),
        ("skills_remote_export", "unknown variant `skills/remote/export`"),
        ("skills_remote_list", "unknown variant `skills/remote/list`"),
        ("skills_remote_read", "unknown variant `skills/remote/list`"),
        ("skills_remote_write", "unknown variant `skills/remote/export`"),
    ];
    let failed: Vec<_> = report.failed.keys().map(String::as_str).collect();
    assert_eq!(failed, expected.map(|(method, _)| method), "{:#?}", report.failed);
    for (method, reason) in expected {
        assert!(report.failed[method].contains(reason), "{method}: {}", report.failed[method]);
    }
}
