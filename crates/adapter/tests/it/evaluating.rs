//! What an evaluation sends, and what becomes of the server's events.

use loomd_adapter::protocol::{Personality, ReasoningEffort, ReasoningSummary, SandboxMode, TurnStatus};
use loomd_adapter::{
    ApprovalPolicy, Event, Json, Limits, McpServer, NoParams, Prompt, Section, Session, Text, Tool, ToolSource,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::mock::{mock, prompt};

#[tokio::test]
async fn a_text_is_the_final_message_and_each_event_is_published_once() {
    let (adapter, mut accepted) = mock();
    let mut session = Session::new();
    let (prompt, limits) = (prompt(), Limits::none());
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        let initialize = mock.handshake().await;
        assert_eq!(initialize["clientInfo"]["name"], "mock-client");
        assert_eq!(initialize["capabilities"]["experimentalApi"], true);
        mock.answer("thread/start", crate::mock::opened("t")).await;
        let turn = mock.turn_start().await;
        assert_eq!(turn["input"], json!([{ "type": "text", "text": "## 1. Task\n\nDo it.", "text_elements": [] }]));
        assert_eq!(turn.get("outputSchema"), None);
        mock.say("thinking").await;
        mock.usage(10, 110).await;
        mock.usage(20, 130).await;
        mock.finish("Done.").await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, limits), playing);
    let response = response.unwrap();
    assert_eq!((response.text.as_str(), &response.output), ("Done.", &Text("Done.".into())));
    assert_eq!((response.thread_id.as_str(), response.turn_id.as_str()), ("t", "u"));
    assert_eq!(response.usage.unwrap().input_tokens, 30);
    assert_eq!(response.thread_usage.unwrap().input_tokens, 130);

    let events = session.events();
    let [rendered, executed] = &events[..] else { panic!("{events:?}") };
    let Event::PromptRendered(rendered) = &**rendered else { panic!("{rendered:?}") };
    assert_eq!((rendered.prompt.as_str(), rendered.text.as_str()), ("test/mock", "## 1. Task\n\nDo it."));
    let Event::PromptExecuted(executed) = &**executed else { panic!("{executed:?}") };
    assert_eq!((executed.status, executed.usage), (TurnStatus::Completed, response.usage));
}

#[tokio::test]
async fn settings_are_sent_with_the_thread_and_the_turn() {
    let (adapter, mut accepted) = mock();
    let adapter = adapter
        .model("gpt-x")
        .effort(ReasoningEffort::Medium)
        .summary(ReasoningSummary::Concise)
        .personality(Personality::Friendly)
        .sandbox(SandboxMode::WorkspaceWrite)
        .approvals(ApprovalPolicy::OnFailure)
        .ephemeral(true)
        .mcp_server("files", McpServer::stdio("/bin/files", ["--flag"]).env("A", "1"))
        .mcp_server("web", McpServer::http("http://127.0.0.1:1/mcp"));
    let tool = Tool::new("look", "Looks.", |_: NoParams, _| async { Ok("nothing") });
    let prompt =
        Prompt::new("test", "settings").section(Section::new("task", "Task", "Go.")).tool(tool).build().unwrap();
    let mut session = Session::new();
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        let (thread, turn) = mock.turn().await;
        mock.finish("ok").await;
        (thread, turn)
    };
    let (response, (thread, turn)) =
        tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
    response.unwrap();
    assert_eq!(
        (&thread["model"], &thread["cwd"], &thread["approvalPolicy"], &thread["sandbox"], &thread["ephemeral"]),
        (&json!("gpt-x"), &json!("/w"), &json!("on-failure"), &json!("workspace-write"), &json!(true))
    );
    let servers = json!({
        "files": { "command": "/bin/files", "args": ["--flag"], "env": { "A": "1" } },
        "web": { "url": "http://127.0.0.1:1/mcp" },
    });
    assert_eq!(thread["config"]["mcp_servers"], servers);
    let schema = json!({ "type": "object", "properties": {} });
    assert_eq!(thread["dynamicTools"], json!([{ "name": "look", "description": "Looks.", "inputSchema": schema }]));
    assert_eq!(
        (&turn["effort"], &turn["summary"], &turn["personality"]),
        (&json!("medium"), &json!("concise"), &json!("friendly"))
    );
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Summary {
    title: String,
    files: Vec<String>,
}

#[tokio::test]
async fn a_typed_output_has_a_strict_schema_and_is_decoded() {
    let (adapter, mut accepted) = mock();
    let (prompt, mut session) = (prompt(), Session::new());
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        let (_, turn) = mock.turn().await;
        mock.finish(r#"{"title":"T","files":["a"]}"#).await;
        turn
    };
    let (response, turn) = tokio::join!(adapter.evaluate::<Summary>(&prompt, &mut session, Limits::none()), playing);
    assert_eq!(response.unwrap().output, Summary { title: "T".into(), files: vec!["a".into()] });
    let schema = &turn["outputSchema"];
    assert_eq!((&schema["required"], &schema["additionalProperties"]), (&json!(["title", "files"]), &json!(false)));
}

#[tokio::test]
async fn deltas_are_the_text_of_a_message_that_is_never_completed() {
    let (adapter, mut accepted) = mock();
    let (prompt, mut session) = (prompt(), Session::new());
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.turn().await;
        for (item, delta) in [("first", "no"), ("second", "Do"), ("second", "ne.")] {
            let delta = json!({ "threadId": "t", "turnId": "u", "itemId": item, "delta": delta });
            mock.notify("item/agentMessage/delta", delta).await;
        }
        mock.end("completed", Value::Null).await;
        mock.left().await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
    assert_eq!(response.unwrap().text, "Done.");
}

#[tokio::test]
async fn tools_of_the_server_are_events_with_their_success() {
    let command = |id: &str, status: &str, exit: i32| {
        json!({
            "type": "commandExecution", "id": id, "command": "ls", "cwd": "/w", "processId": null, "source": "agent",
            "status": status, "commandActions": [], "aggregatedOutput": "out", "exitCode": exit, "durationMs": 5,
        })
    };
    let change = |id: &str, status: &str| {
        let changes = json!([{ "path": "/w/a", "kind": { "type": "add" }, "diff": "+a" }]);
        json!({ "type": "fileChange", "id": id, "changes": changes, "status": status })
    };
    let mcp = |id: &str, status: &str, result: Value, error: Value| {
        json!({
            "type": "mcpToolCall", "id": id, "server": "files", "tool": "read", "status": status, "arguments": { "a": 1 },
            "result": result, "error": error, "durationMs": 7,
        })
    };
    let search = json!({ "type": "webSearch", "id": "9", "query": "rust", "action": null });
    let text = json!({ "content": [{ "type": "text", "text": "content" }], "structuredContent": null });
    let items = [
        command("1", "completed", 0),
        command("2", "failed", 1),
        command("3", "declined", 0),
        change("4", "completed"),
        change("5", "failed"),
        change("6", "declined"),
        mcp("7", "completed", text, Value::Null),
        mcp("8", "failed", Value::Null, json!({ "message": "no such file" })),
        search,
        json!({ "type": "reasoning", "id": "10", "summary": [], "content": [] }),
        json!({ "type": "contextCompaction", "id": "11" }),
        json!({ "type": "somethingNew", "id": "12" }),
    ];
    let (adapter, mut accepted) = mock();
    let (prompt, mut session) = (prompt(), Session::new());
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.turn().await;
        for item in items {
            mock.item(item).await;
        }
        mock.finish("ok").await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
    response.unwrap();
    let events = session.events();
    let seen: Vec<_> = events
        .iter()
        .filter_map(|event| event.tool_invoked())
        .map(|it| (it.call_id.as_str(), it.source.clone(), it.name.as_str(), it.success, it.output.as_str()))
        .collect();
    let mcp = || ToolSource::Mcp { server: "files".into() };
    let expected = [
        ("1", ToolSource::Command, "command", true, "out"),
        ("2", ToolSource::Command, "command", false, "out"),
        ("3", ToolSource::Command, "command", false, "out"),
        ("4", ToolSource::FileChange, "file_change", true, "+a"),
        ("5", ToolSource::FileChange, "file_change", false, "+a"),
        ("6", ToolSource::FileChange, "file_change", false, "+a"),
        ("7", mcp(), "read", true, "content"),
        ("8", mcp(), "read", false, "no such file"),
        ("9", ToolSource::WebSearch, "web_search", true, ""),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn approvals_are_decided_by_the_policy() {
    let command = json!({ "threadId": "t", "turnId": "u", "itemId": "i", "command": "rm x", "cwd": "/w" });
    let change = json!({ "threadId": "t", "turnId": "u", "itemId": "i" });
    let elicitation = |meta: Value| {
        json!({
            "threadId": "t", "turnId": "u", "serverName": "s", "mode": "form", "_meta": meta, "message": "Allow?",
            "requestedSchema": { "type": "object", "properties": {} },
        })
    };
    let table = [
        (ApprovalPolicy::Never, "never", "accept"),
        (ApprovalPolicy::Untrusted, "untrusted", "accept"),
        (ApprovalPolicy::OnFailure, "on-failure", "accept"),
        (ApprovalPolicy::OnRequest, "on-request", "decline"),
    ];
    for (policy, wire, decision) in table {
        let (adapter, mut accepted) = mock();
        let adapter = adapter.approvals(policy);
        let (prompt, mut session) = (prompt(), Session::new());
        let playing = async {
            let mut mock = accepted.recv().await.unwrap();
            let (thread, _) = mock.turn().await;
            assert_eq!(thread["approvalPolicy"], wire);
            let approval = mock.ask("item/commandExecution/requestApproval", command.clone()).await;
            assert_eq!(approval["result"], json!({ "decision": decision }), "{policy:?}");
            let approval = mock.ask("item/fileChange/requestApproval", change.clone()).await;
            assert_eq!(approval["result"], json!({ "decision": decision }), "{policy:?}");
            let meta = json!({ "codex_approval_kind": "mcp_tool_call" });
            let approval = mock.ask("mcpServer/elicitation/request", elicitation(meta)).await;
            assert_eq!(approval["result"]["action"], decision, "{policy:?}");
            let form = mock.ask("mcpServer/elicitation/request", elicitation(Value::Null)).await;
            assert_eq!(form["result"]["action"], "decline");
            mock.finish("ok").await;
        };
        let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
        response.unwrap();
    }
}

#[tokio::test]
async fn reducers_derive_slices_from_events() {
    struct Tools(usize);
    let (adapter, mut accepted) = mock();
    let count = Tool::new("count", "Counts.", |_: NoParams, _| async { Ok(Json(vec![1, 2])) });
    let prompt =
        Prompt::new("test", "reduce").section(Section::new("task", "Task", "Go.")).tool(count).build().unwrap();
    let mut session = Session::new();
    session.on_event(|event, slices| {
        if event.tool_invoked().is_some() {
            let before = slices.latest::<Tools>().map_or(0, |tools| tools.0);
            slices.seed(Tools(before + 1));
        }
    });
    session.on_event(|_, slices| {
        slices.append("lost");
        panic!("a reducer that fails");
    });
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.turn().await;
        let answer = mock.call("count", json!({})).await;
        assert_eq!(answer["contentItems"], json!([{ "type": "inputText", "text": "[1,2]" }]));
        mock.call("count", json!({})).await;
        mock.finish("ok").await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
    response.unwrap();
    assert_eq!(session.latest::<Tools>().unwrap().0, 2);
    assert!(session.all::<&str>().is_empty());
}
