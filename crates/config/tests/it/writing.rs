//! Writing the user's file.

use std::fs;
use std::path::Path;

use loomd_config::{Edit, WriteError, WriteRequest};
use loomd_protocol::{AbsolutePathBuf, ConfigWriteResponse, JsonValue, MergeStrategy, WriteStatus};
use serde_json::json;

use crate::{Fixture, bare, user};

fn edit(key_path: &str, value: JsonValue) -> Edit {
    Edit { key_path: key_path.into(), value, merge_strategy: MergeStrategy::Replace }
}

impl Fixture {
    fn write(&self, edits: &[Edit]) -> Result<ConfigWriteResponse, WriteError> {
        self.write_as(edits, None, None)
    }

    fn write_as(
        &self,
        edits: &[Edit],
        file_path: Option<&str>,
        expected_version: Option<&str>,
    ) -> Result<ConfigWriteResponse, WriteError> {
        let write = WriteRequest { edits, file_path, expected_version, cwd: Path::new("/") };
        loomd_config::write(&self.request(), &write)
    }

    fn text(&self) -> String {
        fs::read_to_string(self.home.join("config.toml")).unwrap_or_default()
    }

    /// Returns the code and the message of a refused write, which must not change the file.
    fn write_refused(&self, edits: &[Edit]) -> (Option<&'static str>, String) {
        let before = self.text();
        let error = self.write(edits).unwrap_err();
        assert_eq!(self.text(), before);
        (error.code(), self.neutral(&error.to_string()))
    }
}

#[test]
fn a_write_returns_the_new_version() {
    let fixture = user("model = 'a' # c\n");
    let first = fixture.write(&[edit("model", json!("b"))]).unwrap();
    assert_eq!(fixture.text(), "model = \"b\" # c\n");
    assert_eq!((first.status, first.overridden_metadata), (WriteStatus::Ok, None));
    assert_eq!(*first.file_path, *fixture.home.join("config.toml"));
    let second = fixture.write_as(&[edit("model", json!("c"))], None, Some(&first.version)).unwrap();
    let error = fixture.write_as(&[], None, Some(&first.version)).unwrap_err();
    assert!(matches!(&error, WriteError::Conflict { version } if *version == second.version), "{error}");
}

#[test]
fn a_missing_file_is_created_by_the_first_write() {
    let fixture = bare();
    fixture.write(&[]).unwrap();
    fixture.write(&[edit("model", json!(null))]).unwrap();
    assert!(!fixture.home.join("config.toml").exists());
    fixture.write(&[edit("model", json!("m"))]).unwrap();
    assert_eq!(fixture.text(), "model = \"m\"\n");
}

#[test]
fn writing_an_equal_value_leaves_the_file_unchanged() {
    let fixture = user("model='a'\nlog_dir = 'logs'\n");
    fixture.write(&[edit("model", json!("a"))]).unwrap();
    assert_eq!(fixture.text(), "model='a'\nlog_dir = 'logs'\n");
}

#[test]
fn a_batch_applies_whole_or_not_at_all() {
    let fixture = user("model = 'a'\n");
    fixture.write(&[edit("model", json!("b")), edit("tui.theme", json!("t")), edit("model", json!("c"))]).unwrap();
    assert_eq!(fixture.text(), "model = \"c\"\n\n[tui]\ntheme = \"t\"\n");
    let bad = [edit("model", json!("d")), edit("approval_policy", json!("bogus"))];
    let variants = "expected one of `untrusted`, `on-failure`, `on-request`, `granular`, `never`";
    let message = format!("Invalid configuration: unknown variant `bogus`, {variants}\nin `approval_policy`\n");
    assert_eq!(fixture.write_refused(&bad), (Some("configValidationError"), message));
}

#[test]
fn an_edit_that_breaks_the_configuration_is_refused() {
    let fixture = user("");
    let check = |key: &str, value: JsonValue, message: &str| {
        let expected = format!("Invalid configuration: {message}");
        assert_eq!(fixture.write_refused(&[edit(key, value)]), (Some("configValidationError"), expected));
    };
    check("model", json!(5), "invalid type: integer `5`, expected a string\nin `model`\n");
    check("mcp_servers.b", json!({"args": []}), "invalid transport\nin `mcp_servers.b`\n");
    check(
        "tool_output_token_limit",
        json!(-1),
        "invalid value: integer `-1`, expected usize\nin `tool_output_token_limit`\n",
    );
    check("profile", json!("nope"), "config profile `nope` not found");
    check("model_provider", json!("nope"), "Model provider `nope` not found");
    assert_eq!(fixture.write_refused(&[edit(" ", json!(1))]).1, "keyPath must not be empty");
}

#[test]
fn an_invalid_file_can_be_repaired_by_edits() {
    let fixture = user("model = 5\nreview_model = 'r'\nprofile = 'gone'\n");
    assert_eq!(fixture.write_refused(&[edit("review_model", json!("x"))]).0, Some("configValidationError"));
    fixture.write(&[edit("model", json!("m"))]).unwrap();
    fixture.write(&[edit("review_model", json!("x"))]).unwrap();
    fixture.write(&[edit("profile", json!(null))]).unwrap();
    assert_eq!(fixture.text(), "model = \"m\"\nreview_model = \"x\"\n");
    fs::write(fixture.home.join("config.toml"), "model = [").unwrap();
    let (code, message) = fixture.write_refused(&[edit("model", json!("m"))]);
    assert_eq!(code, None);
    assert!(message.starts_with("failed to load configuration: <home>/config.toml:1:"), "{message}");
}

#[test]
fn writes_to_other_files_are_refused() {
    let fixture = user("");
    std::os::unix::fs::symlink(&fixture.home, fixture.root.join("alias")).unwrap();
    let write = |path: &str| {
        let path = fixture.root.join(path);
        fixture.write_as(&[edit("model", json!("m"))], path.to_str(), None).map(|done| done.file_path.to_path_buf())
    };
    assert_eq!(write("home/config.toml").unwrap(), fixture.root.join("home/config.toml"));
    assert_eq!(write("alias/./config.toml").unwrap(), fixture.root.join("alias/config.toml"));
    assert_eq!(write("home/other.toml").unwrap_err().code(), Some("configLayerReadonly"));
    assert_eq!(write("elsewhere/config.toml").unwrap_err().to_string(), "Only writes to the user config are allowed");
}

#[test]
fn an_overridden_write_reports_the_overriding_layer() {
    let fixture = user("model = 'a'\n").system("review_model = 's'").flags(&["model=flag", "features.undo=true"]);
    let done = fixture.write(&[edit("model", json!("b"))]).unwrap();
    let metadata = done.overridden_metadata.unwrap();
    assert_eq!((done.status, metadata.message.as_str()), (WriteStatus::OkOverridden, "Overridden by session flags"));
    assert_eq!(metadata.effective_value, json!("flag"));
    assert_eq!(fixture.text(), "model = \"b\"\n");
    assert_eq!(fixture.write(&[edit("model", json!("flag"))]).unwrap().status, WriteStatus::Ok);
    assert_eq!(fixture.write(&[edit("model", json!(null))]).unwrap().status, WriteStatus::OkOverridden);
    fixture.write(&[edit("review_model", json!("mine"))]).unwrap();
    let shown = fixture.write(&[edit("review_model", json!(null))]).unwrap().overridden_metadata.unwrap();
    assert_eq!(fixture.neutral(&shown.message), "Overridden by managed config (system): <root>/system.toml");
}

#[test]
fn concurrent_writers_lose_no_edit() {
    const WRITERS: usize = 8;
    const EACH: usize = 10;
    let fixture = user("# mine\n");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let fixture = &fixture;
            scope.spawn(move || {
                for number in 0..EACH {
                    fixture.write(&[edit(&format!("extra.w{writer}.k{number}"), json!(number))]).unwrap();
                }
            });
        }
    });
    let text = fixture.text();
    assert!(text.starts_with("# mine\n"));
    let table: toml::Table = text.parse().unwrap();
    for writer in 0..WRITERS {
        assert_eq!(table["extra"][&format!("w{writer}")].as_table().unwrap().len(), EACH);
    }
}

#[test]
fn pinned_features_cannot_be_written() {
    let fixture = user("");
    fs::write(fixture.root.join("requirements.toml"), "features.tool_search = false").unwrap();
    let (code, message) = fixture.write_refused(&[edit("features.tool_search", json!(true))]);
    assert_eq!(code, Some("configValidationError"));
    assert_eq!(
        message,
        "Invalid configuration: invalid value for `features`: `features.tool_search=true` is not in the allowed set \
         [tool_search=false] (set by <root>/requirements.toml)"
    );
    fixture.write(&[edit("features.tool_search", json!(false))]).unwrap();
}

#[test]
fn one_value_is_set_in_any_configuration_file_unless_that_breaks_it() {
    let fixture = user("[mcp_servers.srv]\ncommand = 'x' # c\n");
    let file = AbsolutePathBuf::new(fixture.home.join("config.toml")).unwrap();
    let set = |server: &str, tool: &str| {
        let key = ["mcp_servers", server, "tools", tool, "approval_mode"].map(str::to_owned);
        loomd_config::set_value(&fixture.home, &file, &key, &json!("approve"))
    };
    set("srv", "do.it").unwrap();
    let expected =
        "[mcp_servers.srv]\ncommand = 'x' # c\n\n[mcp_servers.srv.tools.\"do.it\"]\napproval_mode = \"approve\"\n";
    assert_eq!(fixture.text(), expected);
    let refused = set("elsewhere", "t").unwrap_err().to_string();
    assert!(refused.contains("invalid transport"), "{refused}");
    assert_eq!(fixture.text(), expected);
}
