//! Turns with a scripted model: events, steering, interrupts, approvals, tools, lost connections.

use std::sync::Mutex;

use loomd_client::handler::tool_success;
use loomd_client::protocol::{
    AskForApproval, CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams, CommandExecutionStatus,
    DynamicTool, DynamicToolCallParams, DynamicToolCallResponse, DynamicToolSpec, ModelListParams, ReviewTarget,
    ServerNotification, ThreadItem, ThreadStartParams, TurnPlanStepStatus, TurnStartParams, TurnStatus,
};
use loomd_client::{AcceptAll, Backoff, Client, Endpoint, Error, EventKind, Handler, Input, Options, Thread, resume};
use loomd_testkit::model::{function_call, message, shell, status, streamed};
use loomd_testkit::{Gate, Home, ScriptedModel};
use serde_json::json;

use crate::proxy::Proxy;
use crate::servers::{Server, on_each_server};

on_each_server! {
    connecting_and_listing_models
    a_simple_turn
    events_stream_while_a_turn_runs
    a_command_is_an_item_with_its_output
    a_handler_approves_and_declines_commands
    a_dynamic_tool_is_called
    a_plan_and_a_diff_are_collected
    turn_settings_reach_the_model_call
    a_turn_is_steered_and_interrupted
    input_during_a_turn_is_added_to_it
    a_failed_turn_is_an_error
    a_turn_without_input_is_an_error
    a_review_returns_its_text
    a_review_that_cannot_start_is_an_error
    a_thread_is_resumed_after_a_restart
    a_turn_survives_a_lost_connection
}

/// A client of a server with a scripted model, and an open thread.
struct Session {
    model: ScriptedModel,
    home: Home,
    client: Client,
    thread: Thread,
}

async fn session(server: &Server, options: Options) -> Session {
    session_with(server, options, ThreadStartParams::default()).await
}

async fn session_with(server: &Server, options: Options, params: ThreadStartParams) -> Session {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model).with(r#"sandbox_mode = "danger-full-access""#);
    let client = server.connect(&home, options).await;
    let thread = client.start_thread(params).await.expect("a thread");
    Session { model, home, client, thread }
}

async fn connecting_and_listing_models(server: Server) {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    let client = server.connect(&home, Options::default()).await;
    let models = client.list_models(ModelListParams::default()).await.unwrap();
    assert_eq!(models.data.iter().filter(|model| model.is_default).count(), 1, "{models:?}");
    assert_eq!(client.close().await.status.unwrap().code(), Some(0));
}

async fn a_simple_turn(server: Server) {
    let session = session(&server, Options::default()).await;
    session.model.reply(streamed(&["hello ", "world"]));
    let done = session.thread.run("echo hello world").await.unwrap();
    assert_eq!(done.agent_message.as_deref(), Some("hello world"));
    assert_eq!((done.turn.status, done.turn.error), (TurnStatus::Completed, None));
    let kinds: Vec<_> = done.items.iter().map(|item| serde_json::to_value(item).unwrap()["type"].clone()).collect();
    assert_eq!(kinds, ["userMessage", "agentMessage"]);
    let usage = done.usage.expect("token counts").last;
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.total_tokens), (10, 5, 15));
    assert_eq!(session.model.call(0).await.user_texts().last(), Some(&"echo hello world"));
}

async fn events_stream_while_a_turn_runs(server: Server) {
    let session = session(&server, Options::default()).await;
    session.model.reply(streamed(&["one ", "two ", "three"]));
    let mut turn = session.thread.send("count").await.unwrap();
    let (mut text, mut methods) = (String::new(), Vec::new());
    while let Some(event) = turn.next().await {
        let event = event.unwrap();
        if let Some(ServerNotification::AgentMessageDelta(piece)) = event.notification() {
            text.push_str(&piece.delta);
        }
        methods.push(event.method().unwrap_or_default().to_owned());
    }
    assert_eq!(text, "one two three");
    assert_eq!(methods.iter().filter(|method| *method == "turn/started").count(), 1, "{methods:?}");
    assert_eq!(methods.last().map(String::as_str), Some("turn/completed"), "{methods:?}");
    assert_eq!(turn.finish().await.unwrap().agent_message.as_deref(), Some("one two three"));
}

async fn a_command_is_an_item_with_its_output(server: Server) {
    let session = session(&server, Options::default()).await;
    session.model.reply(shell("echo hi; exit 3")).reply(message("done"));
    let done = session.thread.run("run it").await.unwrap();
    let commands: Vec<_> = done.items.iter().filter_map(command).collect();
    assert_eq!(commands, [(CommandExecutionStatus::Failed, Some(3), Some("hi\n"))]);
}

/// Status, exit code and output of a command.
fn command(item: &ThreadItem) -> Option<(CommandExecutionStatus, Option<i32>, Option<&str>)> {
    match item {
        ThreadItem::CommandExecution { status, exit_code, aggregated_output, .. } => {
            Some((*status, *exit_code, aggregated_output.as_deref()))
        }
        _ => None,
    }
}

struct AcceptTouch;

impl Handler for AcceptTouch {
    async fn approve_command(
        &self,
        request: CommandExecutionRequestApprovalParams,
    ) -> CommandExecutionApprovalDecision {
        match request.command {
            Some(command) if command.contains("touch") => CommandExecutionApprovalDecision::Accept,
            _ => CommandExecutionApprovalDecision::Decline,
        }
    }
}

async fn a_handler_approves_and_declines_commands(server: Server) {
    let options = Options::default().handler(AcceptTouch).approval_policy(AskForApproval::Untrusted);
    let session = session(&server, options).await;
    session.model.reply(shell("touch made")).reply(shell("rm made")).reply(message("done"));
    let done = session.thread.run("do both").await.unwrap();
    let statuses: Vec<_> = done.items.iter().filter_map(command).map(|(status, ..)| status).collect();
    assert_eq!(statuses, [CommandExecutionStatus::Completed, CommandExecutionStatus::Declined]);
    assert!(session.home.work().join("made").exists());
}

/// A tool that records its calls.
#[derive(Default)]
struct AddTool(Mutex<Vec<DynamicToolCallParams>>);

impl Handler for &'static AddTool {
    async fn call_tool(&self, request: DynamicToolCallParams) -> DynamicToolCallResponse {
        let sum = request.arguments["a"].as_i64().unwrap_or(0) + request.arguments["b"].as_i64().unwrap_or(0);
        self.0.lock().unwrap().push(request);
        tool_success(sum.to_string())
    }
}

async fn a_dynamic_tool_is_called(server: Server) {
    let adder: &'static AddTool = Box::leak(Box::default());
    let tool = DynamicToolSpec::Function(DynamicTool {
        name: "add".into(),
        description: "Adds two numbers.".into(),
        input_schema: json!({ "type": "object", "properties": { "a": { "type": "number" }, "b": { "type": "number" } } }),
        defer_loading: false,
    });
    let params = ThreadStartParams { dynamic_tools: Some(vec![tool]), ..Default::default() };
    let session = session_with(&server, Options::default().handler(adder), params).await;
    session.model.reply(function_call("add", json!({ "a": 2, "b": 3 }), "call")).reply(message("5"));
    let done = session.thread.run("2 + 3").await.unwrap();
    assert_eq!(done.agent_message.as_deref(), Some("5"));
    let calls = adder.0.lock().unwrap().clone();
    assert_eq!((calls.len(), calls[0].tool.as_str(), calls[0].thread_id.as_str()), (1, "add", session.thread.id()));
    let output = session.model.call(1).await.tool_output("call").cloned().unwrap();
    assert!(output.to_string().contains('5'), "{output}");
}

async fn a_plan_and_a_diff_are_collected(server: Server) {
    let session = session(&server, Options::default()).await;
    let plan = json!({ "plan": [{ "step": "write", "status": "completed" }] });
    let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: new.txt\n+text\n*** End Patch\nEOF";
    session.model.reply(function_call("update_plan", plan, "plan")).reply(shell(patch)).reply(message("done"));
    let done = session.thread.run("plan and write").await.unwrap();
    let steps: Vec<_> = done.plan.iter().map(|step| (step.step.as_str(), step.status)).collect();
    assert_eq!(steps, [("write", TurnPlanStepStatus::Completed)]);
    assert!(done.diff.as_deref().is_some_and(|diff| diff.contains("+text")), "{:?}", done.diff);
    assert!(done.items.iter().any(|item| matches!(item, ThreadItem::FileChange { .. })), "{:?}", done.items);
}

async fn turn_settings_reach_the_model_call(server: Server) {
    let session = session(&server, Options::default()).await;
    session.model.reply(message("{\"answer\":5}"));
    let schema = json!({ "type": "object", "properties": { "answer": { "type": "number" } }, "required": ["answer"],
        "additionalProperties": false });
    let said = session.thread.turn_params(Input::text("as JSON").and_image("data:image/png;base64,AAAA"));
    let params = TurnStartParams { output_schema: Some(schema.clone()), model: Some("other".into()), ..said };
    let done = session.client.run_turn(params).await.unwrap();
    assert_eq!(done.agent_message.as_deref(), Some("{\"answer\":5}"));
    let call = session.model.call(0).await;
    assert_eq!((&call.body["model"], &call.body["text"]["format"]["schema"]), (&json!("other"), &schema));
    assert!(call.body["input"].to_string().contains("data:image/png;base64,AAAA"));
}

async fn a_turn_is_steered_and_interrupted(server: Server) {
    let session = session(&server, Options::default()).await;
    let (first, second) = (Gate::new(), Gate::new());
    session.model.reply(message("first").after(&first)).reply(message("second").after(&second));
    let mut turn = session.thread.send("begin").await.unwrap();
    session.model.call(0).await;
    assert_eq!(turn.steer("more").await.unwrap(), turn.id());
    assert_eq!(session.thread.steer("even more").await.unwrap(), turn.id());
    first.open();
    let call = session.model.call(1).await;
    assert_eq!(call.user_texts()[call.user_texts().len() - 2..], ["more", "even more"]);
    turn.next().await.unwrap().unwrap();
    turn.interrupt().await.unwrap();
    let done = turn.finish().await.unwrap();
    assert_eq!((done.turn.status, done.agent_message.as_deref()), (TurnStatus::Interrupted, Some("first")));
    let error = session.thread.steer("too late").await.unwrap_err();
    assert!(matches!(error, Error::NoActiveTurn { .. }), "{error}");
}

async fn input_during_a_turn_is_added_to_it(server: Server) {
    let session = session(&server, Options::default()).await;
    let gate = Gate::new();
    session.model.reply(message("first").after(&gate)).reply(message("second"));
    let first = session.thread.send("begin").await.unwrap();
    session.model.call(0).await;
    let second = session.thread.send("and this").await.unwrap();
    gate.open();
    let (first, second) = tokio::join!(first.finish(), second.finish());
    assert_eq!(first.unwrap().turn.status, TurnStatus::Completed);
    assert_eq!(second.unwrap().agent_message.as_deref(), Some("second"));
}

async fn a_failed_turn_is_an_error(server: Server) {
    let session = session(&server, Options::default()).await;
    session.model.reply(status(400, json!({ "error": { "message": "no such model" } })));
    let error = session.thread.run("hi").await.unwrap_err();
    let Error::TurnFailed(done) = &error else { panic!("{error:?}") };
    assert_eq!(done.turn.status, TurnStatus::Failed);
    assert!(error.to_string().contains("no such model"), "{error}");
    session.model.reply(message("better"));
    assert_eq!(session.thread.run("again").await.unwrap().agent_message.as_deref(), Some("better"));
}

async fn a_turn_without_input_is_an_error(server: Server) {
    let session = session(&server, Options::default()).await;
    let error = session.thread.run(Vec::new()).await.unwrap_err();
    assert!(error.to_string().contains("input must not be empty"), "{error}");
}

async fn a_review_returns_its_text(server: Server) {
    let session = session(&server, Options::default()).await;
    let found = json!({ "findings": [], "overall_correctness": "patch is correct", "overall_explanation": "All good.",
        "overall_confidence_score": 0.9 });
    session.model.reply(message(&found.to_string()));
    let review =
        session.thread.review(ReviewTarget::Custom { instructions: Some("look at everything".into()) }).await.unwrap();
    assert_eq!((review.review_text.as_str(), review.turn.status), ("All good.", TurnStatus::Completed));
    assert_eq!(review.thread_id, session.thread.id());
    let markers = review
        .items
        .iter()
        .filter(|item| matches!(item, ThreadItem::EnteredReviewMode { .. } | ThreadItem::ExitedReviewMode { .. }));
    assert_eq!(markers.count(), 2, "{:?}", review.items);
}

async fn a_review_that_cannot_start_is_an_error(server: Server) {
    let session = session(&server, Options::default()).await;
    let target = ReviewTarget::BaseBranch { branch: Some("main".into()) };
    let error = session.thread.review(target).await.unwrap_err();
    assert!(error.to_string().contains("not a git repository"), "{error}");
}

async fn a_thread_is_resumed_after_a_restart(server: Server) {
    let session = session(&server, Options::default()).await;
    session.model.reply(message("one")).reply(message("two")).reply(message("three"));
    session.thread.run("first").await.unwrap();
    let fork = session.thread.fork().await.unwrap();
    fork.run("in the fork").await.unwrap();
    session.client.close().await;

    let client = server.connect(&session.home, Options::default()).await;
    assert_eq!(client.read_thread(fork.id(), true).await.unwrap().turns.len(), 2);
    let thread = client.resume_thread(resume(session.thread.id())).await.unwrap();
    assert_eq!(thread.info().turns.len(), 1);
    thread.run("second").await.unwrap();
    assert_eq!(thread.read(true).await.unwrap().turns.len(), 2);
    let texts = session.model.call(2).await;
    assert!(texts.user_texts().contains(&"first") && !texts.user_texts().contains(&"in the fork"));
}

async fn a_turn_survives_a_lost_connection(server: Server) {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model).with(r#"sandbox_mode = "danger-full-access""#);
    let listener = server.launch().websocket(&home).await;
    let proxy = Proxy::to(listener.port()).await;
    let options = Options::default().handler(AcceptAll).reconnect(Backoff::default());
    let client = Client::connect(Endpoint::websocket(proxy.url()), options).await.unwrap();
    let thread = client.start_thread(ThreadStartParams::default()).await.unwrap();
    let gate = Gate::new();
    model.reply(shell("echo before")).reply(message("after").after(&gate));
    let mut turn = thread.send("go").await.unwrap();
    model.call(1).await;
    proxy.cut();
    loop {
        if let EventKind::Reconnected = turn.next().await.unwrap().unwrap().kind {
            break;
        }
    }
    gate.open();
    let done = turn.finish().await.unwrap();
    assert_eq!((done.turn.status, done.agent_message.as_deref()), (TurnStatus::Completed, Some("after")));
    assert_eq!(done.items.iter().filter_map(command).count(), 1, "{:?}", done.items);
    model.reply(message("and on"));
    assert_eq!(thread.run("again").await.unwrap().agent_message.as_deref(), Some("and on"));
}
