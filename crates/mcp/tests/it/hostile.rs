//! Servers that break the rules: each has a clear outcome, and memory stays bounded.

use std::time::Duration;

use loomd_mcp::{CallError, MAX_TOOLS, StartError};

use crate::support::{ANSWER, Script, Thread, call, logged, servers, text};

#[tokio::test]
async fn lines_that_are_no_messages_are_skipped() {
    let noise = format!(r#"echo 'Server listening'; printf '\001\002\n'; echo '{{"id":[]}}'; echo '[[['; {ANSWER}"#);
    let server = servers().get(&Script::new(&noise).config());
    let result = server.call_tool(call("t"), Thread::new("a")).await.unwrap();
    assert_eq!(text(&result.content), "done");
}

#[tokio::test]
async fn an_endless_line_ends_in_the_deadline_of_the_call_and_memory_stays_bounded() {
    let endless = r#"printf '{"jsonrpc":"2.0","id":%s,"result":"' "$id"; while :; do printf '%65536s' x; done"#;
    let server = servers().get(&Script::new(endless).config());
    server.start().await.unwrap();
    let before = resident();
    let endless = loomd_mcp::ToolCall { timeout: Duration::from_secs(3), ..call("t") };
    let failed = server.call_tool(endless, Thread::new("a")).await.unwrap_err();
    assert!(matches!(failed, CallError::Timeout { .. }), "{failed}");
    let more = resident().saturating_sub(before);
    assert!(more < 200 << 20, "{} MiB more", more >> 20);
}

#[tokio::test]
async fn a_result_of_100_mb_fails_its_call_and_no_other() {
    let huge = format!(
        r#"if [ -e "$LOG" ]; then {ANSWER}; else : > "$LOG"
           printf '{{"jsonrpc":"2.0","id":%s,"result":{{"content":[{{"type":"text","text":"' "$id"
           head -c 100000000 /dev/zero | tr '\000' x; printf '"}}]}}}}\n'; fi"#
    );
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new(&huge).with("LOG", folder.path().join("called").to_string_lossy());
    let server = servers().get(&script.config());
    server.start().await.unwrap();
    let before = resident();
    let failed = server.call_tool(call("t"), Thread::new("a")).await.unwrap_err();
    assert_eq!(failed.to_string(), "the server's answer is larger than 32 MiB");
    let more = resident().saturating_sub(before);
    assert!(more < 200 << 20, "{} MiB more", more >> 20);
    assert_eq!(text(&server.call_tool(call("t"), Thread::new("a")).await.unwrap().content), "done");
}

#[tokio::test]
async fn a_thousand_tools_are_listed_and_an_endless_listing_is_cut() {
    let tools = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"nextCursor":"%s","tools":[' "$id" "$id"
        i=0; while [ $i -lt 999 ]; do printf '{"name":"t%s-%s"},' $id $i; i=$((i+1)); done
        printf '{"name":"last%s"}]}}\n' "$id""#;
    let server = servers().get(&Script::new(ANSWER).with("LIST", tools).config());
    assert_eq!(server.start().await.unwrap().tools.len(), MAX_TOOLS);
    let one_page = tools.replace(r#""nextCursor":"%s","#, "").replace(r#""$id" "$id""#, r#""$id""#);
    let server = servers().get(&Script::new(ANSWER).with("LIST", one_page).config());
    assert_eq!(server.start().await.unwrap().tools.len(), 1000);
}

#[tokio::test]
async fn tools_that_are_none_and_names_that_come_again_do_not_hide_the_others() {
    let tools = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[5,{"name":""},{"name":"a b"},{"name":"a b"},{"name":"x","inputSchema":7}]}}\n' "$id""#;
    let server = servers().get(&Script::new(ANSWER).with("LIST", tools).config());
    let listing = server.start().await.unwrap();
    let names: Vec<_> = listing.tools.iter().map(|tool| (tool.name.as_str(), tool.parameters().is_ok())).collect();
    assert_eq!(names, [("a b", true), ("x", false)]);
}

#[tokio::test]
async fn a_hanging_handshake_ends_at_the_startup_timeout() {
    let mut config = Script::new(ANSWER).with("INIT", "sleep 60").config();
    config.startup_timeout = Duration::from_millis(300);
    let failed = servers().get(&config).start().await.unwrap_err();
    assert!(matches!(failed, StartError::Timeout(_)), "{failed}");
    assert!(failed.message("srv").contains("startup_timeout_sec"));
}

#[tokio::test]
async fn a_server_that_exits_in_the_handshake_or_is_not_there_says_so() {
    let failed = servers().get(&Script::new(ANSWER).with("INIT", "exit 3").config()).start().await.unwrap_err();
    let expected = "MCP client for `srv` failed to start: MCP startup failed: \
                    handshaking with MCP server failed: connection closed: initialize response";
    assert_eq!(failed.message("srv"), expected);
    let mut config = Script::new(ANSWER).config();
    let loomd_mcp::Endpoint::Stdio(program) = &mut config.endpoint else { unreachable!() };
    program.command = "/no/such/program".into();
    let failed = servers().get(&config).start().await.unwrap_err();
    assert!(failed.to_string().contains("No such file or directory (os error 2)"), "{failed}");
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_fails_it_and_is_started_again_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let dies_once = format!(r#"if [ -e "$LOG" ]; then {ANSWER}; else : > "$LOG"; kill -9 $$; fi"#);
    let script = Script::new(&dies_once).with("LOG", folder.path().join("died").to_string_lossy());
    let server = servers().get(&script.config());
    let failed = server.call_tool(call("t"), Thread::new("a")).await.unwrap_err();
    assert!(matches!(failed, CallError::Closed), "{failed}");
    assert!(server.listing().is_some(), "its tools stay known");
    assert_eq!(text(&server.call_tool(call("t"), Thread::new("a")).await.unwrap().content), "done");
}

#[tokio::test]
async fn a_server_that_always_dies_is_left_alone_for_a_while() {
    let server = servers().get(&Script::new("exit 1").config());
    let mut last = String::new();
    for _ in 0..6 {
        last = server.call_tool(call("t"), Thread::new("a")).await.unwrap_err().to_string();
        if last.contains("in a row") {
            return;
        }
    }
    panic!("it was started again and again: {last}");
}

#[tokio::test]
async fn a_server_that_does_not_read_its_input_fails_calls_at_their_deadline() {
    let server = servers().get(&Script::new("sleep 60").config());
    server.start().await.unwrap();
    let big = |size: usize| {
        let arguments = serde_json::json!({ "x": "y".repeat(size) }).as_object().cloned();
        loomd_mcp::ToolCall { arguments, timeout: Duration::from_millis(300), ..call("t") }
    };
    for _ in 0..3 {
        let failed = server.call_tool(big(1 << 20), Thread::new("a")).await.unwrap_err();
        assert!(matches!(failed, CallError::Timeout { .. }), "{failed}");
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_or_late_is_cancelled_at_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let server = servers().get(&Script::new(":").with("LOG", log.to_string_lossy()).config());
    server.start().await.unwrap();
    let late = loomd_mcp::ToolCall { timeout: Duration::from_millis(100), ..call("t") };
    assert!(matches!(server.call_tool(late, Thread::new("a")).await, Err(CallError::Timeout { .. })));
    logged(&log, r#""requestId":2"#).await;
    let dropped = server.call_tool(call("t"), Thread::new("a"));
    let _ = tokio::time::timeout(Duration::from_millis(100), dropped).await;
    logged(&log, r#""requestId":3"#).await;
}

/// The resident memory of this process, in bytes.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}
