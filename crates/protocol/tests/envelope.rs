//! Classification of messages, and the errors for wrong methods and params.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use loomd_protocol::{
    ClientRequest, DecodeError, FileChangeRequestApprovalParams, Incoming, Level, RequestId, RpcError,
    ServerNotification,
};
use proptest::prelude::*;
use serde_json::json;

/// Describes a line as `request ID METHOD`, `notification METHOD`, `response ID`, `error ID` or `nothing`.
fn kind(line: impl AsRef<[u8]>) -> String {
    match Incoming::parse(line.as_ref()) {
        Ok(Incoming::Request { id, method, .. }) => format!("request {id} {method}"),
        Ok(Incoming::Notification { method, .. }) => format!("notification {method}"),
        Ok(Incoming::Response { id, .. }) => format!("response {id}"),
        Ok(Incoming::Error { id, error }) => format!("error {id} {error}"),
        Err(_) => "nothing".into(),
    }
}

#[test]
fn each_kind_of_message_is_recognised() {
    for (line, expected) in [
        (r#"{"method":"a","id":1}"#, "request 1 a"),
        (r#"{"method":"a","id":"1","params":null}"#, "request \"1\" a"),
        (r#"{"method":"a","id":"","params":[]}"#, "request \"\" a"),
        (r#"{"method":"a\/b","id":-9223372036854775808}"#, "request -9223372036854775808 a/b"),
        (r#"{"method":"a","id":9223372036854775807}"#, "request 9223372036854775807 a"),
        (r#"{"method":"a","id":9223372036854775808}"#, "notification a"),
        (r#"{"method":"a","id":null}"#, "notification a"),
        (r#"{"method":"a","id":7.0}"#, "notification a"),
        (r#"{"method":"a","id":true}"#, "notification a"),
        (r#"{"method":"a","id":{}}"#, "notification a"),
        (r#"{"method":"a","id":1,"id":1}"#, "notification a"),
        (r#"{"method":"a","id":1,"trace":5}"#, "notification a"),
        (r#"{"method":"a","id":1,"trace":null}"#, "request 1 a"),
        (r#"{"method":"a","id":1,"trace":{"traceparent":"nonsense","x":1}}"#, "request 1 a"),
        (r#"{"method":"a","id":1,"trace":{},"trace":{}}"#, "notification a"),
        (r#"{"method":"a","method":"b","id":1}"#, "nothing"),
        (r#"{"method":"a","method":"b","id":1,"result":1}"#, "response 1"),
        (r#"{"method":"a","id":1,"params":{},"params":{}}"#, "nothing"),
        (r#"{"method":"a","id":1,"result":{}}"#, "request 1 a"),
        (r#"{"method":5,"id":1}"#, "nothing"),
        (r#"{"method":5,"id":1,"result":null}"#, "response 1"),
        (r#"{"id":1,"result":null}"#, "response 1"),
        (r#"{"id":"x","error":{"code":-1,"message":"no"}}"#, "error \"x\" no (-1)"),
        (r#"{"id":1,"error":{"code":"-1","message":"no"}}"#, "nothing"),
        (r#"{"id":null,"result":1}"#, "nothing"),
        (r#"{"jsonrpc":[],"surprise":{"id":3},"method":"a","id":2}"#, "request 2 a"),
        ("  \t{\"method\":\"a\",\"id\":1} \r", "request 1 a"),
        ("{\"method\":\"a\",\n\"id\":1}", "request 1 a"),
        ("{}", "nothing"),
        ("[]", "nothing"),
        ("5", "nothing"),
        ("", "nothing"),
        (r#"{"method":"a","id":1}{"method":"a","id":2}"#, "nothing"),
        ("\u{feff}{\"method\":\"a\",\"id\":1}", "nothing"),
    ] {
        assert_eq!(kind(line), expected, "{line}");
    }
    assert_eq!(kind(b"{\"method\":\"a\xff\",\"id\":1}"), "nothing");
}

#[test]
fn the_id_of_a_truncated_request_is_found() {
    let found = |head: &str| Incoming::find_request_id(head.as_bytes());
    assert_eq!(found(r#"{"method":"a","id":7,"params":{"x":"yyyy"#), Some(RequestId::Integer(7)));
    assert_eq!(found(r#"{"id":"s","jsonrpc":"2.0","method":"a","params":"#), Some(RequestId::String("s".into())));
    assert_eq!(found(r#"{"id":7,"result":{"x":"yyyy"#), None);
    assert_eq!(found(r#"{"params":{"x":"yyyy"#), None);
    assert_eq!(found("yyyy"), None);
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let deep = "[".repeat(1_000_000);
    assert_eq!(kind(&deep), "nothing");
    let closed = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    assert_eq!(kind(format!(r#"{{"method":"a","id":1,"x":{closed}}}"#)), "request 1 a");
    let line = format!(r#"{{"method":"thread/start","id":1,"params":{{"config":{{"a":{closed}}}}}}}"#);
    let Ok(Incoming::Request { params, .. }) = Incoming::parse(line.as_bytes()) else { panic!("a request") };
    assert_eq!(refusal("thread/start", params.map(|raw| raw.get())), "recursion limit exceeded");
}

fn decode(method: &str, params: Option<&str>) -> Result<ClientRequest, DecodeError> {
    let raw = params.map(|params| serde_json::value::RawValue::from_string(params.to_owned()).unwrap());
    ClientRequest::decode(method, raw.as_deref())
}

fn refusal(method: &str, params: Option<&str>) -> String {
    decode(method, params).expect_err("refused").to_string()
}

#[test]
fn decode_errors_name_the_field_and_problem() {
    for (method, params, expected) in [
        ("turn/start", None, "missing field `params`"),
        ("turn/start", Some(r#"{"input":[]}"#), "missing field `threadId`"),
        ("initialize", Some("{}"), "missing field `clientInfo`"),
        ("initialize", Some(r#"{"clientInfo":{"version":"1"}}"#), "missing field `name`"),
        ("thread/loaded/list", Some(r#"{"limit":"x"}"#), r#"invalid type: string "x", expected u32"#),
        ("thread/loaded/list", Some(r#"{"limit":-1}"#), "invalid value: integer `-1`, expected u32"),
        ("thread/loaded/list", Some(r#"{"limit":1.0}"#), "invalid type: floating point `1.0`, expected u32"),
        ("thread/loaded/list", Some(r#""x""#), r#"invalid type: string "x", expected struct ThreadLoadedListParams"#),
        ("thread/loaded/list", Some("[]"), "invalid length 0, expected struct ThreadLoadedListParams with 2 elements"),
        ("fs/readFile", Some(r#"{"path":"rel"}"#), "AbsolutePathBuf deserialized without a base path"),
        ("fs/readFile", Some(r#"{"path":5}"#), "invalid type: integer `5`, expected path string"),
        (
            "thread/start",
            Some(r#"{"approvalPolicy":"x"}"#),
            "unknown variant `x`, expected one of `untrusted`, `on-failure`, `on-request`, `granular`, `never`",
        ),
    ] {
        assert_eq!(refusal(method, params), expected, "{method} {params:?}");
    }
    let unknown = refusal("no/suchMethod", Some("{}"));
    assert!(unknown.starts_with("unknown variant `no/suchMethod`, expected one of `initialize`, `thread/start`, "));
    assert!(unknown.contains("`getAuthStatus`"), "{unknown}");
    let error = RpcError::from(decode("Initialize", None).unwrap_err());
    assert_eq!((error.code, error.data), (-32600, None));
    assert!(error.message.starts_with("Invalid request: unknown variant `Initialize`"));
}

#[test]
fn missing_params_count_as_empty_if_all_fields_are_optional() {
    for method in
        ["thread/loaded/list", "model/list", "thread/start", "mcpServerStatus/list", "config/read", "thread/list"]
    {
        assert_eq!(decode(method, None), decode(method, Some("{}")), "{method}");
        assert!(decode(method, None).is_ok(), "{method}");
    }
}

#[test]
fn a_method_without_params_accepts_only_absent_null_or_empty_params() {
    for method in ["account/logout", "configRequirements/read", "config/mcpServer/reload"] {
        for params in [None, Some("null"), Some("{}")] {
            assert!(decode(method, params).is_ok(), "{method} {params:?}");
        }
        assert_eq!(refusal(method, Some(r#"{"a":1}"#)), "invalid type: map, expected unit");
        assert_eq!(refusal(method, Some("[1]")), "invalid type: sequence, expected unit");
        assert_eq!(refusal(method, Some("\"x\"")), "invalid type: string \"x\", expected unit");
    }
}

#[test]
fn messages_of_newer_clients_are_accepted() {
    assert!(
        decode("turn/start", Some(r#"{"threadId":"t","input":[],"title":"x","effort":"ultra","serviceTier":"new"}"#))
            .is_ok()
    );
    let tools = r#"{"dynamicTools":[{"name":"a","description":"b","inputSchema":{}},
        {"type":"function","name":"a","description":"b","inputSchema":{}},
        {"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"a","description":"b","inputSchema":{}}]}]}"#;
    assert!(decode("thread/start", Some(tools)).is_ok());
    assert!(decode("thread/start", Some(r#"{"approvalsReviewer":"auto_review"}"#)).is_ok());
    assert!(decode("thread/list", Some(r#"{"cwd":["/a","/b"],"sortKey":"recency_at"}"#)).is_ok());
    assert!(decode("turn/start", Some(r#"{"threadId":"t","input":[{"type":"localAudio","path":"/a"}]}"#)).is_ok());
    assert!(decode("feedback/upload", Some(r#"{"classification":"bug"}"#)).is_ok());
    assert!(decode("plugin/read", Some(r#"{"pluginName":"p"}"#)).is_ok());
    for params in [None, Some("null"), Some(r#"{"excludeResetCreditDetails":true}"#)] {
        assert!(decode("account/rateLimits/read", params).is_ok(), "{params:?}");
    }
    assert_eq!(
        refusal("turn/start", Some(r#"{"threadId":"t","input":[],"effort":5}"#)),
        "invalid type: integer `5`, expected a string"
    );
}

#[test]
fn repeated_params_members_take_the_last_value() {
    let request = decode("mock/experimentalMethod", Some(r#"{"value":"a","value":"b"}"#)).unwrap();
    assert_eq!(request, decode("mock/experimentalMethod", Some(r#"{"value":"b"}"#)).unwrap());
}

#[test]
fn experimental_use_is_named() {
    for (method, params, expected) in [
        ("mock/experimentalMethod", "{}", Some("mock/experimentalMethod")),
        ("thread/start", "{}", None),
        ("thread/start", r#"{"dynamicTools":[],"mockExperimentalField":null,"experimentalRawEvents":false}"#, None),
        ("thread/start", r#"{"persistExtendedHistory":true}"#, Some("thread/start.persistFullHistory")),
        (
            "thread/start",
            r#"{"mockExperimentalField":"x","approvalPolicy":{"granular":{"sandbox_approval":true,"rules":true,"mcp_elicitations":true}}}"#,
            Some("askForApproval.granular"),
        ),
        ("thread/resume", r#"{"threadId":"x","history":[]}"#, None),
        (
            "thread/resume",
            r#"{"threadId":"x","path":"/p","approvalPolicy":{"granular":{"sandbox_approval":true,"rules":true,"mcp_elicitations":true}}}"#,
            Some("thread/resume.path"),
        ),
        ("thread/resume", r#"{"threadId":"x","path":"/p","persistExtendedHistory":true}"#, Some("thread/resume.path")),
        ("thread/fork", r#"{"threadId":"x","path":"/p"}"#, Some("thread/fork.path")),
        (
            "turn/start",
            r#"{"threadId":"x","input":[],"collaborationMode":{"mode":"plan","settings":{"model":"m"}}}"#,
            Some("turn/start.collaborationMode"),
        ),
        ("account/login/start", r#"{"type":"apiKey","apiKey":"k"}"#, None),
        (
            "account/login/start",
            r#"{"type":"chatgptAuthTokens","accessToken":"a","chatgptAccountId":"b"}"#,
            Some("account/login/start.chatgptAuthTokens"),
        ),
    ] {
        assert_eq!(
            decode(method, Some(params)).unwrap().experimental_use(Level::V0_118),
            expected,
            "{method} {params}"
        );
    }
    for (method, params, expected) in [
        ("thread/start", r#"{"dynamicTools":[]}"#, Some("thread/start.dynamicTools")),
        ("thread/start", r#"{"dynamicTools":null,"persistExtendedHistory":true}"#, None),
        ("thread/resume", r#"{"threadId":"x","history":[]}"#, Some("thread/resume.history")),
    ] {
        assert_eq!(
            decode(method, Some(params)).unwrap().experimental_use(Level::V0_166),
            expected,
            "{method} {params}"
        );
    }
}

#[test]
fn debug_of_messages_hides_secrets() {
    let login = decode("account/login/start", Some(r#"{"type":"apiKey","apiKey":"sk-hidden"}"#)).unwrap();
    assert!(!format!("{login:?}").contains("hidden"));
}

#[test]
fn only_deltas_of_the_same_text_merge() {
    let delta = |item: &str, text: &str| {
        let params = json!({ "threadId": "t", "turnId": "u", "itemId": item, "delta": text });
        let raw = serde_json::value::to_raw_value(&params).unwrap();
        ServerNotification::decode("item/agentMessage/delta", Some(&raw)).unwrap()
    };
    let mut first = delta("i", "Hel");
    assert!(first.same_text(&delta("i", "lo")));
    first.merge_text(&delta("i", "lo"));
    assert_eq!(first, delta("i", "Hello"));
    assert!(!first.same_text(&delta("j", "!")));
    first.merge_text(&delta("j", "!"));
    assert_eq!(first, delta("i", "Hello"));
    assert_eq!(first.text_delta().map(|delta| (delta.thread_id(), delta.text())), Some(("t", "Hello")));
}

proptest! {
    #[test]
    fn malformed_messages_do_not_panic(line in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Incoming::parse(&line);
    }

    #[test]
    fn request_ids_round_trip(id in prop_oneof![any::<i64>().prop_map(RequestId::Integer), ".*".prop_map(RequestId::String)]) {
        let line = loomd_protocol::encode_response(&id, &json!({})).unwrap();
        let Ok(Incoming::Response { id: back, .. }) = Incoming::parse(&line) else { panic!("a response") };
        prop_assert_eq!(back, id);
    }

    #[test]
    fn malformed_params_do_not_panic(
        method in prop::sample::select(ClientRequest::METHODS),
        params in r#"[\[\]{}",:0-9a-z\\-]{0,60}"#,
    ) {
        if let Ok(raw) = serde_json::value::RawValue::from_string(params) {
            let _ = ClientRequest::decode(method, Some(&raw));
        }
    }
}

#[test]
fn absent_file_change_approval_fields_are_sent_as_null() {
    let asked: FileChangeRequestApprovalParams =
        serde_json::from_value(json!({ "threadId": "t", "turnId": "u", "itemId": "i" })).unwrap();
    let expected = json!({
        "threadId": "t", "turnId": "u", "itemId": "i", "reason": null, "grantRoot": null, "startedAtMs": 0,
    });
    assert_eq!(json!(asked), expected);
}
