//! Deadlines and budgets.

use std::time::Duration;

use loomd_adapter::protocol::TurnStatus;
use loomd_adapter::{
    Budget, BudgetTracker, Event, FailureKind, Limits, NoParams, Phase, Prompt, Section, Session, Text, Tool,
    ToolContext,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::mock::{mock, opened, prompt};

const MINUTE: Duration = Duration::from_secs(60);

fn tokens(total: u64) -> Budget {
    Budget { total_tokens: Some(total), ..Budget::default() }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_interrupts_the_turn_and_waits_for_its_end() {
    let (adapter, mut accepted) = mock();
    let (prompt, mut session) = (prompt(), Session::new());
    let begun = Instant::now();
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.turn().await;
        let params = mock.answer("turn/interrupt", json!({})).await;
        assert_eq!(params, json!({ "threadId": "t", "turnId": "u" }));
        assert_eq!(begun.elapsed().as_secs(), 60);
        mock.usage(5, 5).await;
        mock.end("interrupted", Value::Null).await;
        mock.left().await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::within(MINUTE)), playing);
    let error = response.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!((failure.phase, failure.kind), (Phase::Request, FailureKind::Deadline));
    assert_eq!((failure.turn_id.as_deref(), failure.usage.unwrap().total_tokens), (Some("u"), 6));
    let events = session.events();
    let Some(Event::PromptExecuted(executed)) = events.last().map(|event| &**event) else { panic!("{events:?}") };
    assert_eq!(executed.status, TurnStatus::Interrupted);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_the_interrupt_is_left_after_a_grace() {
    let (adapter, mut accepted) = mock();
    let adapter = adapter.interrupt_grace(Duration::from_secs(3));
    let (prompt, mut session) = (prompt(), Session::new());
    let begun = Instant::now();
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.turn().await;
        mock.request("turn/interrupt").await;
        mock.left().await;
        assert_eq!(begun.elapsed().as_secs(), 63);
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::within(MINUTE)), playing);
    assert_eq!(response.unwrap_err().failure().unwrap().kind, FailureKind::Deadline);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_every_step_before_the_turn() {
    for answered in 0..3 {
        let (adapter, mut accepted) = mock();
        let adapter = adapter.startup_timeout(Duration::from_secs(3600));
        let (prompt, mut session) = (prompt(), Session::new());
        let playing = async {
            let mut mock = accepted.recv().await.unwrap();
            if answered > 0 {
                mock.handshake().await;
            }
            if answered > 1 {
                mock.answer("thread/start", opened("t")).await;
            }
            while mock.message().await.is_some() {}
        };
        let evaluating = adapter.evaluate::<Text>(&prompt, &mut session, Limits::within(Duration::from_secs(5)));
        let (response, ()) = tokio::join!(evaluating, playing);
        let error = response.unwrap_err();
        let failure = error.failure().unwrap();
        assert_eq!((failure.phase, failure.kind), (Phase::Request, FailureKind::Deadline), "{answered}: {failure}");
    }
}

#[tokio::test]
async fn limits_that_are_reached_already_start_nothing() {
    let (adapter, _accepted) = mock();
    let (prompt, mut session) = (prompt(), Session::new());
    let past = Limits { deadline: Some(Instant::now()), budget: None };
    let error = adapter.evaluate::<Text>(&prompt, &mut session, past).await.unwrap_err();
    assert_eq!((error.phase(), error.failure().unwrap().kind), (Some(Phase::Request), FailureKind::Deadline));
    let of_budget = Limits::none().budget(Budget { deadline: Some(Instant::now()), ..Budget::default() });
    let error = adapter.evaluate::<Text>(&prompt, &mut session, of_budget).await.unwrap_err();
    assert_eq!(error.failure().unwrap().kind, FailureKind::Deadline);
    assert!(session.events().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_cancelled_and_rolled_back_at_the_deadline() {
    let forever = Tool::new("forever", "Waits.", |_: NoParams, context: ToolContext| async move {
        context.append("lost");
        std::future::pending::<()>().await;
        Ok(())
    });
    let prompt =
        Prompt::new("test", "tool").section(Section::new("task", "Task", "Go.")).tool(forever).build().unwrap();
    let (adapter, mut accepted) = mock();
    let mut session = Session::new();
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.turn().await;
        let params = json!({ "threadId": "t", "turnId": "u", "callId": "c", "tool": "forever", "arguments": {} });
        mock.send(json!({ "id": 7, "method": "item/tool/call", "params": params })).await;
        // The answer to the call and the interrupt come in any order.
        let mut interrupted = false;
        for _ in 0..2 {
            let message = mock.message().await.unwrap();
            if message["method"] == "turn/interrupt" {
                interrupted = true;
                mock.send(json!({ "id": message["id"], "result": {} })).await;
            } else {
                assert_eq!((&message["id"], &message["result"]["success"]), (&json!(7), &json!(false)), "{message}");
            }
        }
        assert!(interrupted);
        mock.end("interrupted", Value::Null).await;
        mock.left().await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::within(MINUTE)), playing);
    assert_eq!(response.unwrap_err().failure().unwrap().kind, FailureKind::Deadline);
    assert!(session.all::<&str>().is_empty());
}

#[tokio::test]
async fn a_budget_interrupts_the_turn_while_it_runs() {
    let (adapter, mut accepted) = mock();
    let (prompt, mut session) = (prompt(), Session::new());
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.turn().await;
        // The thread's earlier turns do not count.
        mock.usage(50, 1050).await;
        mock.usage(60, 1110).await;
        mock.answer("turn/interrupt", json!({})).await;
        mock.end("interrupted", Value::Null).await;
        mock.left().await;
    };
    let limits = Limits::none().budget(tokens(100));
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, limits), playing);
    let error = response.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!((failure.phase, failure.kind), (Phase::Budget, FailureKind::Budget));
    assert_eq!(failure.message, "the budget is exceeded: 111 total tokens of 100");
}

#[tokio::test]
async fn a_shared_budget_counts_over_evaluations() {
    let tracker = BudgetTracker::new(tokens(100));
    let limits = || Limits::none().shared_budget(&tracker);
    let (adapter, mut accepted) = mock();
    let (prompt, mut session) = (prompt(), Session::new());
    for _ in 0..2 {
        let playing = async {
            let mut mock = accepted.recv().await.unwrap();
            mock.turn().await;
            mock.usage(49, 49).await;
            mock.finish("ok").await;
        };
        let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, limits()), playing);
        response.unwrap();
    }
    assert_eq!(tracker.used().total_tokens, 100);
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.turn().await;
        mock.usage(0, 0).await;
        mock.answer("turn/interrupt", json!({})).await;
        mock.end("interrupted", Value::Null).await;
        mock.left().await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, limits()), playing);
    assert_eq!(response.unwrap_err().phase(), Some(Phase::Budget));
    // The next one does not begin.
    let error = adapter.evaluate::<Text>(&prompt, &mut session, limits()).await.unwrap_err();
    assert_eq!(error.phase(), Some(Phase::Budget));
}
