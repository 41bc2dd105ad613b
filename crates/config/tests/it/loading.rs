//! Layers, overrides, and errors with their locations.

use loomd_config::LoadRequest;
use loomd_protocol::{AbsolutePathBuf, ConfigLayerSource, ConfigWarningNotification, TextPosition, TextRange};
use serde_json::json;

use crate::{bare, user};

fn range(start: (usize, usize), end: (usize, usize)) -> TextRange {
    let at = |(line, column)| TextPosition { line, column };
    TextRange { start: at(start), end: at(end) }
}

/// Checks the error of a user file: its message and its location.
fn check(text: &str, message: &str, start: (usize, usize), end: (usize, usize)) {
    let fixture = user(text);
    let error = fixture.load().unwrap_err();
    let (line, column) = start;
    assert_eq!(fixture.neutral(&error.to_string()), format!("<home>/config.toml:{line}:{column}: {message}"), "{text}");
    assert_eq!(error.location().unwrap().range, range(start, end), "{text}");
}

#[test]
fn a_wrong_value_is_reported_with_its_location() {
    check(
        "model = \"x\"\napproval_policy = \"bogus\"\n",
        "unknown variant `bogus`, expected one of `untrusted`, `on-failure`, `on-request`, `granular`, `never`",
        (2, 19),
        (2, 25),
    );
    check("model = 5", "invalid type: integer `5`, expected a string", (1, 9), (1, 9));
    check("[features]\napps = \"yes\"", "invalid type: string \"yes\", expected a boolean", (2, 8), (2, 12));
    check("notify = [\"a\", 5]", "invalid type: integer `5`, expected a string", (1, 16), (1, 16));
    check("tool_output_token_limit = -1", "invalid value: integer `-1`, expected usize", (1, 27), (1, 28));
    check("model_context_window = 1.5", "invalid type: floating point `1.5`, expected i64", (1, 24), (1, 26));
    check("[agents]\nmax_threads = 0", "invalid value: integer `0`, expected a nonzero usize", (2, 15), (2, 15));
    check("log_dir = 5", "invalid type: integer `5`, expected path string", (1, 11), (1, 11));
    check("[model_providers.m]\nbase_url = 'x'", "missing field `name`", (1, 1), (1, 19));
    check("[mcp_servers.s]\nargs = []", "invalid transport", (1, 1), (1, 15));
    check("mcp_servers.s = { command = 'x', url = 'y' }", "url is not supported for stdio", (1, 17), (1, 44));
    check(
        "tools = { web_search = 'x' }",
        "invalid type: string \"x\", expected a table or a boolean",
        (1, 24),
        (1, 26),
    );
    check(
        "[otel]\nexporter = 'x'",
        "unknown variant `x`, expected one of `none`, `statsig`, `otlp-http`, `otlp-grpc`",
        (2, 12),
        (2, 14),
    );
}

#[test]
fn an_error_in_an_array_is_located_at_its_element() {
    let of_string = "invalid type: integer `5`, expected a string";
    check("project_root_markers = ['a', 5]", of_string, (1, 30), (1, 30));
    check("[mcp_servers.'a.b']\ncommand = 'x'\nargs = ['a', 5]", of_string, (3, 14), (3, 14));
    let of_bool = "invalid type: string \"x\", expected a boolean";
    check(
        "[[skills.config]]\nname = 'a'\nenabled = true\n[[skills.config]]\nname = 'b'\nenabled = 'x'",
        of_bool,
        (6, 11),
        (6, 13),
    );
}

#[test]
fn relative_paths_do_not_hide_the_location_of_another_error() {
    check("log_dir = 'x'\nmodel = 5", "invalid type: integer `5`, expected a string", (2, 9), (2, 9));
}

#[test]
fn a_syntax_error_is_reported_with_its_location() {
    check("model = \"a\"\nmodel = \"b\"\n", "duplicate key", (2, 1), (2, 5));
    check("model = [1\n", "unclosed array, expected `]`", (1, 11), (1, 11));
    check("model = \"x\n", "invalid basic string, expected `\"`", (1, 11), (1, 11));
    check("a = 1\né☃ = 1", "invalid unquoted key, expected letters, numbers, `-`, `_`", (2, 1), (2, 2));
    let too_large = "invalid type: integer `99999999999999999999` as i128, expected any valid TOML value";
    check("x = 99999999999999999999", too_large, (1, 5), (1, 24));
    let fixture = user(b"model = \"\xff\"\n");
    assert_eq!(fixture.error(), "<home>/config.toml:1:10: invalid UTF-8");
}

#[test]
fn a_wrong_value_in_a_flag_has_no_location() {
    let text = "invalid type: integer `5`, expected a string\nin `model`\n";
    assert_eq!(bare().flags(&["model=5"]).error(), text);
    assert_eq!(user("review_model = 5").flags(&["model=5"]).error(), text);
    assert_eq!(bare().thread(json!({"model": 5})).error(), text);
    assert_eq!(
        bare().thread(json!({"mcp_servers.b": {"args": []}})).error(),
        "invalid transport\nin `mcp_servers.b`\n"
    );
}

#[test]
fn an_overridden_wrong_value_is_ignored() {
    let loaded = user("model = 5").flags(&["model=x"]).load().unwrap();
    assert_eq!(loaded.config.model.as_deref(), Some("x"));
}

#[test]
fn higher_layers_win() {
    let fixture = user("model = 'user'\nreview_model = 'user'")
        .system("model = 'system'\nmodel_provider = 'system'")
        .flags(&["review_model=flag", "developer_instructions=flag"])
        .thread(json!({"developer_instructions": "thread", "compact_prompt": null, "future": 1}));
    let config = fixture.load().unwrap().config;
    let found = [config.model_provider, config.model, config.review_model, config.developer_instructions];
    assert_eq!(found, ["system", "user", "flag", "thread"].map(|value| Some(value.to_owned())));
}

#[test]
fn missing_files_are_empty_layers_and_without_overrides_there_is_no_session_layer() {
    let loaded = bare().load().unwrap();
    let kinds: Vec<_> = loaded.stack.layers().iter().map(|layer| (&layer.source, layer.table.len())).collect();
    assert!(
        matches!(kinds[..], [(ConfigLayerSource::System { .. }, 0), (ConfigLayerSource::User { .. }, 0)]),
        "{kinds:?}"
    );
}

#[test]
fn an_unreadable_file_is_named_in_the_error() {
    let fixture = bare();
    std::fs::create_dir(fixture.home.join("config.toml")).unwrap();
    let error = fixture.error();
    assert!(error.starts_with("failed to read <home>/config.toml: "), "{error}");
}

#[test]
fn paths_in_overrides_are_resolved_against_the_working_directory_or_the_home() {
    let fixture = bare().flags(&["log_dir=x"]);
    let log_dir = |request| loomd_config::load(&request).unwrap().config.log_dir.unwrap();
    assert_eq!(log_dir(fixture.request()), AbsolutePathBuf::resolve(&fixture.home, "x"));
    let cwd = AbsolutePathBuf::new("/w").unwrap();
    let request = LoadRequest { cwd: Some(&cwd), ..fixture.request() };
    assert_eq!(log_dir(request), AbsolutePathBuf::new("/w/x").unwrap());
}

#[test]
fn a_server_starts_with_an_invalid_file() {
    let fixture = user("model = \"x\"\napproval_policy = \"bogus\"\n").flags(&["review_model=flag"]);
    let start = fixture.start().unwrap();
    let path = fixture.home.join("config.toml").display().to_string();
    let variants = "`untrusted`, `on-failure`, `on-request`, `granular`, `never`";
    assert_eq!(
        start.warnings,
        [ConfigWarningNotification {
            summary: "Invalid configuration; using defaults.".into(),
            details: Some(format!("{path}:2:19: unknown variant `bogus`, expected one of {variants}")),
            path: Some(path),
            range: Some(range((2, 19), (2, 25))),
        }]
    );
    assert_eq!((start.settings.config.model, start.settings.config.review_model), (None, Some("flag".into())));
}

#[test]
fn an_error_without_location_names_its_cause() {
    let warning = |text| {
        let mut start = user(text).start().unwrap();
        let warning = start.warnings.pop().unwrap();
        assert_eq!((warning.path, warning.range), (None, None));
        warning.details.unwrap()
    };
    assert_eq!(warning("profile = 'absent'"), "config profile `absent` not found");
    assert_eq!(warning("model_provider = 'nope'"), "Model provider `nope` not found");
}

#[test]
fn an_error_in_the_system_file_is_located_there() {
    let fixture = user("model = 'x'").system("\nmodel_verbosity = 'loud'");
    assert_eq!(
        fixture.error(),
        "<root>/system.toml:2:19: unknown variant `loud`, expected one of `low`, `medium`, `high`"
    );
}

#[test]
fn invalid_flags_prevent_the_start() {
    let stopped = |flag| bare().flags(&[flag]).start().unwrap_err().to_string();
    assert_eq!(stopped("model=5"), "invalid type: integer `5`, expected a string\nin `model`\n");
    assert_eq!(stopped("profile=p"), "config profile `p` not found");
    assert!(user("model = [").flags(&["model=5"]).start().is_err());
}

#[test]
fn a_valid_file_gives_no_warning() {
    assert_eq!(user("future_key = 1\n[features]\nfuture = true").start().unwrap().warnings, []);
}
