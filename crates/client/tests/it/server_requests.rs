//! Server requests and how a [`Handler`] answers them.

use std::sync::Arc;
use std::time::Duration;

use loomd_client::handler::tool_success;
use loomd_client::protocol::{
    CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams, DynamicToolCallParams,
    DynamicToolCallResponse, JsonValue, ModelListParams, RpcError, ToolRequestUserInputAnswer,
    ToolRequestUserInputParams, ToolRequestUserInputResponse,
};
use loomd_client::{AcceptAll, Error, Handler, Options};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::api::with_thread;
use crate::script::*;

fn place() -> Value {
    json!({ "threadId": "t", "turnId": "u", "itemId": "i" })
}

fn with(mut params: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    params
}

/// Sends each request in turn, with ids of both types, and compares the responses.
async fn check(options: Options, open: &[(&str, Value, Value)]) {
    let (_client, mut server) = connected(options).await;
    for (number, (method, params, answer)) in open.iter().enumerate() {
        let id = if number % 2 == 0 { json!(number) } else { json!(number.to_string()) };
        server.send(json!({ "id": id, "method": method, "params": params })).await;
        let mut expected = answer.clone();
        expected["id"] = id;
        assert_eq!(server.message().await, expected, "{method}");
    }
}

#[tokio::test]
async fn unhandled_requests_are_declined() {
    let result = |result: Value| json!({ "result": result });
    let error = |code: i64, message: &str| json!({ "error": { "code": code, "message": message } });
    let refused = [
        ("item/commandExecution/requestApproval", place(), result(json!({ "decision": "decline" }))),
        ("item/fileChange/requestApproval", place(), result(json!({ "decision": "decline" }))),
        (
            "item/permissions/requestApproval",
            with(
                place(),
                json!({ "reason": null, "permissions": { "network": { "enabled": true }, "fileSystem": null } }),
            ),
            result(json!({ "permissions": {}, "scope": "turn" })),
        ),
        ("item/tool/requestUserInput", with(place(), json!({ "questions": [] })), result(json!({ "answers": {} }))),
        (
            "item/tool/call",
            json!({ "threadId": "t", "turnId": "u", "callId": "c", "tool": "x", "arguments": {} }),
            result(json!({
                "contentItems": [{ "type": "inputText", "text": "this client has no tool x" }], "success": false,
            })),
        ),
        (
            "mcpServer/elicitation/request",
            json!({
                "threadId": "t", "turnId": null, "serverName": "s", "mode": "form", "message": "?", "_meta": null,
                "requestedSchema": { "type": "object", "properties": {} },
            }),
            result(json!({ "action": "decline", "content": null, "_meta": null })),
        ),
        (
            "account/chatgptAuthTokens/refresh",
            json!({ "reason": "unauthorized" }),
            error(-32603, "this client cannot refresh tokens"),
        ),
        (
            "execCommandApproval",
            json!({
                "conversationId": "t", "callId": "c", "approvalId": null, "command": ["ls"], "cwd": "/",
                "reason": null, "parsedCmd": [],
            }),
            result(json!({ "decision": "denied" })),
        ),
        (
            "applyPatchApproval",
            json!({ "conversationId": "t", "callId": "c", "fileChanges": {}, "reason": null, "grantRoot": null }),
            result(json!({ "decision": "denied" })),
        ),
        ("currentTime/read", json!({}), error(-32601, "this client does not answer currentTime/read")),
        ("item/tool/call", json!({ "tool": 5 }), error(-32601, "this client does not answer item/tool/call")),
    ];
    check(Options::default(), &refused).await;
}

struct TestHandler;

impl Handler for TestHandler {
    async fn approve_command(
        &self,
        request: CommandExecutionRequestApprovalParams,
    ) -> CommandExecutionApprovalDecision {
        assert_ne!(request.command.as_deref(), Some("panic"), "as the test wants it");
        CommandExecutionApprovalDecision::Accept
    }

    async fn call_tool(&self, request: DynamicToolCallParams) -> DynamicToolCallResponse {
        tool_success(format!("{} of {}", request.tool, request.arguments))
    }

    async fn answer_questions(&self, request: ToolRequestUserInputParams) -> ToolRequestUserInputResponse {
        let answer = |id| (id, ToolRequestUserInputAnswer { answers: vec!["yes".into()] });
        let answers = request.questions.into_iter().map(|question| answer(question.id)).collect();
        ToolRequestUserInputResponse { answers }
    }

    async fn answer_other(&self, method: String, params: JsonValue) -> Result<JsonValue, RpcError> {
        Ok(json!([method, params]))
    }
}

#[tokio::test]
async fn responses_have_the_id_of_the_request() {
    let question = json!({ "id": "q", "header": "h", "question": "?", "options": null });
    let answered = [
        (
            "item/commandExecution/requestApproval",
            with(place(), json!({ "command": "ls" })),
            json!({ "result": { "decision": "accept" } }),
        ),
        (
            "item/tool/call",
            json!({ "threadId": "t", "turnId": "u", "callId": "c", "tool": "x", "arguments": [1] }),
            json!({ "result": { "contentItems": [{ "type": "inputText", "text": "x of [1]" }], "success": true } }),
        ),
        (
            "item/tool/requestUserInput",
            with(place(), json!({ "questions": [question] })),
            json!({ "result": { "answers": { "q": { "answers": ["yes"] } } } }),
        ),
        ("currentTime/read", json!({ "a": 1 }), json!({ "result": ["currentTime/read", { "a": 1 }] })),
        (
            "item/commandExecution/requestApproval",
            with(place(), json!({ "command": "panic" })),
            json!({ "error": { "code": -32603, "message": "the client failed to answer" } }),
        ),
    ];
    check(Options::default().handler(TestHandler), &answered).await;
}

#[tokio::test]
async fn accept_all_accepts_for_the_session() {
    let accepted = [
        ("item/commandExecution/requestApproval", place(), json!({ "result": { "decision": "acceptForSession" } })),
        ("item/fileChange/requestApproval", place(), json!({ "result": { "decision": "acceptForSession" } })),
    ];
    check(Options::default().handler(AcceptAll), &accepted).await;
}

/// Never answers, and signals when its request is dropped.
struct SlowHandler {
    open: Arc<Notify>,
    withdrawn: Arc<Notify>,
}

struct NotifyOnDrop(Arc<Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Handler for SlowHandler {
    async fn approve_command(&self, _: CommandExecutionRequestApprovalParams) -> CommandExecutionApprovalDecision {
        let _withdrawn = NotifyOnDrop(Arc::clone(&self.withdrawn));
        self.open.notify_one();
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_resolved_request_is_dropped_and_others_are_not_delayed() {
    let (open, withdrawn) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let handler = SlowHandler { open: Arc::clone(&open), withdrawn: Arc::clone(&withdrawn) };
    let (client, mut server) = connected(Options::default().handler(handler)).await;
    let request = json!({ "id": 7, "method": "item/commandExecution/requestApproval", "params": place() });
    server.send(request.clone()).await;
    open.notified().await;
    // After `thread/resume` a server sends open requests again.
    server.send(request).await;
    let (listed, _) = tokio::join!(
        client.list_models(ModelListParams::default()),
        server.answer("model/list", json!({ "data": [], "nextCursor": null }))
    );
    listed.unwrap();
    server.notify("serverRequest/resolved", json!({ "threadId": "t", "requestId": 7 })).await;
    withdrawn.notified().await;
    drop(client);
    server.left().await;
}

#[tokio::test(start_paused = true)]
async fn open_requests_suspend_the_turn_timeout() {
    let (open, withdrawn) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let handler = SlowHandler { open, withdrawn };
    let (thread, mut server) = with_thread(Options::default().handler(handler)).await;
    let playing = async {
        server.answer("turn/start", json!({ "turn": turn("u", "inProgress") })).await;
        server.send(json!({ "id": 7, "method": "item/commandExecution/requestApproval", "params": place() })).await;
        tokio::time::sleep(Duration::from_secs(3000)).await;
        server.notify("serverRequest/resolved", json!({ "threadId": "t", "requestId": 7 })).await;
        server.request("turn/interrupt").await;
    };
    let start = tokio::time::Instant::now();
    let (done, ()) = tokio::join!(thread.run("hi"), playing);
    assert!(matches!(done, Err(Error::TurnTimeout { .. })), "{done:?}");
    assert_eq!(start.elapsed().as_secs(), 3300);
}
