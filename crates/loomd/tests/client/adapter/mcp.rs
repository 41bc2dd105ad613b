//! MCP servers of an adapter, with a small one on stdio.

use loomd_adapter::{McpServer, Session, Text, ToolSource};
use loomd_testkit::model::{function_call, message};
use serde_json::json;

use super::{Target, evaluate, on_each_target, prompt, setup};

on_each_target! {
    a_tool_of_an_mcp_server_is_called
}

/// A server with one tool, `shout`, which fails without a text.
const SCRIPT: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message:
        continue
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "small", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        result = {"tools": [{"name": "shout", "description": "Shouts.", "inputSchema": schema}]}
    elif method == "tools/call":
        text = params["arguments"].get("text")
        content = [{"type": "text", "text": text.upper() if text else "no text"}]
        result = {"content": content, "isError": text is None}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

async fn a_tool_of_an_mcp_server_is_called(target: Target) {
    let setup = setup(&target).await;
    let script = setup.home.write("small.py", SCRIPT).display().to_string();
    let adapter = setup.adapter.clone().mcp_server("small", McpServer::stdio("python3", [script]));
    setup.model.reply(function_call("mcp__small__shout", json!({ "text": "hello" }), "call_1")).reply(message("done"));
    let mut session = Session::new();
    let response = evaluate::<Text>(&adapter, &prompt("Shout."), &mut session).await;
    assert_eq!(response.text, "done");
    let events = session.events();
    let [call] = &events.iter().filter_map(|event| event.tool_invoked()).collect::<Vec<_>>()[..] else {
        panic!("{events:?}")
    };
    assert_eq!(call.source, ToolSource::Mcp { server: "small".into() });
    assert_eq!((call.name.as_str(), call.success, call.output.as_str()), ("shout", true, "HELLO"));
    assert_eq!(call.arguments, json!({ "text": "hello" }));
}
