//! One connection for all threads, and whose its messages are.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{ANSWER, Script, Thread, call, logged, servers, text};

#[tokio::test]
async fn a_hundred_threads_with_one_configuration_share_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let pid = r#"echo "started $$" >> "$LOG"; printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}\n' "$id""#;
    let script = Script::new(ANSWER).with("INIT", pid).with("LOG", log.to_string_lossy());
    let servers = servers();
    let threads: Vec<_> = (0..100).map(|_| servers.get(&script.config())).collect();
    let starts: Vec<_> =
        threads.iter().cloned().map(|server| tokio::spawn(async move { server.start().await.is_ok() })).collect();
    for start in starts {
        assert!(start.await.unwrap());
    }
    assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), 1);
    let other = servers.get(&loomd_mcp::ServerConfig { name: "other".into(), ..script.config() });
    assert!(!Arc::ptr_eq(&other, &threads[0]), "another configuration");

    let started = std::fs::read_to_string(&log).unwrap();
    let pid: u32 = started.trim().rsplit(' ').next().unwrap().parse().unwrap();
    drop(threads);
    let gone = async {
        while std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("it ends with its last user");
}

#[tokio::test]
async fn progress_reaches_its_call_in_order_and_before_the_result() {
    let progress = format!(
        r#"token=${{line#*'"progressToken":'}}; token=${{token%%,*}}; token=${{token%%\}}*}}
           for step in 1 2 3; do
             printf '{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":%s,"progress":%s,"message":"step %s"}}}}\n' "$token" $step $step
           done; {ANSWER}"#
    );
    let (server, thread) = (servers().get(&Script::new(&progress).config()), Thread::new("a"));
    server.call_tool(call("t"), Arc::clone(&thread) as _).await.unwrap();
    assert_eq!(*thread.progress.lock(), ["step 1", "step 2", "step 3"]);
}

/// Asks the user, and answers the call with what the client answered.
const ELICITS: &str = r#"printf '{"jsonrpc":"2.0","id":"e%s","method":"elicitation/create","params":{"message":"Name?","requestedSchema":{"type":"object","properties":{}}}}\n' "$id"
    call=$id; IFS= read -r answer; answer=${answer#*'"result":'}; answer=${answer%\}}
    printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":%s}}\n' "$call" "$answer""#;

#[tokio::test]
async fn an_elicitation_goes_to_the_thread_whose_call_is_in_flight() {
    let (server, thread) = (servers().get(&Script::new(ELICITS).config()), Thread::new("a"));
    let result = server.call_tool(call("t"), Arc::clone(&thread) as _).await.unwrap();
    let expected = serde_json::json!({ "action": "accept", "content": { "thread": "a" } });
    assert_eq!((result.structured_content, thread.elicitations.lock().len()), (Some(expected), 1));
}

#[tokio::test]
async fn an_elicitation_that_could_be_of_several_threads_is_declined() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    // The first call is not answered.
    let script = format!(r#"if [ -e "$LOG" ]; then {ELICITS}; else echo called > "$LOG"; fi"#);
    let server = servers().get(&Script::new(&script).with("LOG", log.to_string_lossy()).config());
    let (first, second) = (Thread::new("a"), Thread::new("b"));
    let open = {
        let (server, first) = (Arc::clone(&server), Arc::clone(&first));
        tokio::spawn(async move { server.call_tool(call("t"), first).await.is_ok() })
    };
    logged(&log, "called").await;
    let result = server.call_tool(call("t"), Arc::clone(&second) as _).await.unwrap();
    assert_eq!(result.structured_content, Some(serde_json::json!({ "action": "decline" })));
    assert!(first.elicitations.lock().is_empty() && second.elicitations.lock().is_empty());
    open.abort();
}

#[tokio::test]
async fn a_form_with_nested_objects_is_refused_to_the_server() {
    let nested = ELICITS.replace(r#""properties":{}"#, r#""properties":{"a":{"type":"object","properties":{}}}"#);
    let nested = nested.replace("'\"result\":'", "'\"error\":'");
    let (server, thread) = (servers().get(&Script::new(&nested).config()), Thread::new("a"));
    let result = server.call_tool(call("t"), Arc::clone(&thread) as _).await.unwrap();
    assert_eq!(result.structured_content.unwrap()["code"], -32601);
    assert!(thread.elicitations.lock().is_empty());
}

#[tokio::test]
async fn changed_tools_are_listed_again() {
    let changes =
        format!(r#"{ANSWER}; LIST=$NEXT; echo '{{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}'"#);
    let next = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"new"}]}}\n' "$id""#;
    let server = servers().get(&Script::new(&changes).with("NEXT", next).config());
    let result = server.call_tool(call("t"), Thread::new("a")).await.unwrap();
    assert_eq!(text(&result.content), "done");
    let listed = async {
        while server.listing().unwrap().tools[0].name != "new" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), listed).await.expect("the new tools are listed");
}
