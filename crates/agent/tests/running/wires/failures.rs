//! Every way a turn can fail, and how it recovers, over every wire.

use loomd_testkit::model::ModelOutput::{self, *};
use loomd_testkit::model::{Reply, Wire, hang_up, status};
use serde_json::{Value, json};

use super::{seen, world};

/// A failure of the provider, in the format of each wire.
enum Wrong {
    /// An error response: its status and type.
    Refused(u16, &'static str),
    /// An error response that differs between wires.
    Named(fn(Wire) -> (u16, Value)),
    Says(&'static [ModelOutput]),
    HangsUp,
}

impl Wrong {
    fn reply(&self, wire: Wire) -> Reply {
        match self {
            Self::Refused(code, kind) => status(*code, wire.refusal(kind, "the reason")),
            Self::Named(named) => {
                let (code, body) = named(wire);
                status(code, body)
            }
            Self::Says(says) => wire.reply(says),
            Self::HangsUp => hang_up(),
        }
    }
}

fn full(wire: Wire) -> (u16, Value) {
    match wire {
        Wire::Anthropic => (400, wire.refusal("invalid_request_error", "prompt is too long: 9 tokens > 5 maximum")),
        _ => (400, wire.refusal("context_length_exceeded", "too long")),
    }
}

fn poor(wire: Wire) -> (u16, Value) {
    match wire {
        Wire::Responses => (429, json!({ "error": { "type": "usage_limit_reached", "plan_type": "pro" } })),
        Wire::Chat => (429, wire.refusal("insufficient_quota", "pay")),
        Wire::Anthropic => (400, wire.refusal("billing_error", "Your credit balance is too low")),
    }
}

fn busy(wire: Wire) -> (u16, Value) {
    match wire {
        Wire::Anthropic => (529, wire.refusal("overloaded_error", "Overloaded")),
        _ => (503, wire.refusal("server_is_overloaded", "busy")),
    }
}

/// Every class of provider errors, and whether it is retried.
fn classes() -> Vec<(Wrong, Value, bool)> {
    let http = |status: Option<u16>| json!({ "httpConnectionFailed": { "httpStatusCode": status } });
    let broken = json!({ "responseStreamDisconnected": { "httpStatusCode": null } });
    let limited = json!({ "responseTooManyFailedAttempts": { "httpStatusCode": 429 } });
    vec![
        (Wrong::Refused(400, "strange"), json!("badRequest"), false),
        (Wrong::Refused(401, "strange"), json!("unauthorized"), false),
        (Wrong::Refused(403, "strange"), http(Some(403)), false),
        (Wrong::Refused(404, "strange"), http(Some(404)), false),
        (Wrong::Refused(429, "strange"), limited, true),
        (Wrong::Refused(500, "strange"), json!("internalServerError"), true),
        (Wrong::Refused(502, "strange"), http(Some(502)), true),
        (Wrong::Named(full), json!("contextWindowExceeded"), false),
        (Wrong::Named(poor), json!("usageLimitExceeded"), false),
        (Wrong::Named(busy), json!("serverOverloaded"), false),
        (Wrong::Says(&[Text(&["half"]), Cut]), broken.clone(), true),
        (Wrong::Says(&[Text(&["half"]), Fail("it broke")]), broken.clone(), true),
        (Wrong::Says(&[Text(&["half"]), Length]), broken, false),
        (Wrong::HangsUp, http(None), true),
    ]
}

/// The configuration with this number of retries.
fn tries(retries: u64) -> String {
    format!("model_providers.scripted.stream_max_retries = {retries}")
}

#[tokio::test]
async fn every_class_of_errors_fails_the_turn() {
    for wire in Wire::ALL {
        for (wrong, info, _) in classes() {
            let world = world(wire, &tries(0)).await;
            world.model.reply(wrong.reply(wire)).reply(wire.reply(&[Text(&["fine"])]));
            let id = world.start(false).await;
            assert_eq!(world.ask(id, "hi").await, "failed", "{wire:?} {info}");
            let end = world.received.of("turn/completed");
            assert_eq!(end[0]["turn"]["error"]["codexErrorInfo"], info, "{wire:?}");
            let errors: Vec<Value> = world
                .received
                .of("error")
                .iter()
                .map(|told| json!([told["error"]["codexErrorInfo"], told["willRetry"]]))
                .collect();
            assert_eq!(errors, [json!([info, false])], "{wire:?}");
            // The next turn has the earlier user message. A full window is compacted first; of a broken answer only
            // complete items are kept.
            assert_eq!(world.ask(id, "and?").await, "completed", "{wire:?} {info}");
            if !matches!(wrong, Wrong::Says(_) | Wrong::Named(_)) {
                assert_eq!(world.model.call(1).await.conversation(), ["user: hi\n\nand?"], "{wire:?} {info}");
            }
        }
    }
}

#[tokio::test]
async fn transient_errors_are_retried() {
    for wire in Wire::ALL {
        for (wrong, info, again) in classes() {
            let world = world(wire, &tries(1)).await;
            world.model.reply(wrong.reply(wire)).reply(wire.reply(&[Text(&["fine"])]));
            let id = world.start(false).await;
            let expected = if again { ("completed", 1) } else { ("failed", 0) };
            let status = world.ask(id, "hi").await;
            let retries = world.received.of("error").iter().filter(|told| told["willRetry"] == true).count();
            assert_eq!((status.as_str(), retries), expected, "{wire:?} {info}");
        }
    }
}

/// Items that were complete before the stream broke stay in the conversation, and no tool runs twice.
#[tokio::test]
async fn a_call_before_the_break_is_not_made_again() {
    for wire in Wire::ALL {
        let world = world(wire, &tries(1)).await;
        let plan = r#"{"plan":[{"step":"Look","status":"pending"}]}"#;
        world.model.reply(wire.reply(&[Call("update_plan", plan, "c1"), Fail("it broke")]));
        world.model.reply(wire.reply(&[Text(&["fine"])]));
        let id = world.start(false).await;
        assert_eq!(world.ask(id, "hi").await, "completed");
        let seen: Vec<String> =
            world.received.all().iter().filter_map(|(method, params)| seen(method, params)).collect();
        let made = wire != Wire::Chat;
        // On this wire a call is complete only at the end of the answer.
        let plans = seen.iter().filter(|line| *line == "plan Look").count();
        assert_eq!(plans, usize::from(made), "{wire:?} {seen:?}");
        let outputs =
            world.model.call(1).await.conversation().iter().filter(|line| line.starts_with("output c1")).count();
        assert_eq!(outputs, plans, "{wire:?}");
    }
}

#[tokio::test]
async fn an_answer_that_reaches_the_output_limit_is_published_once_and_recorded() {
    for wire in Wire::ALL {
        let world = world(wire, &tries(5)).await;
        let took = Took { input: 100, cached: 0, output: 20, reasoning: 0 };
        world.model.reply(wire.reply(&[Text(&["half"]), Length, took])).reply(wire.reply(&[Text(&["rest"])]));
        let id = world.start(false).await;
        assert_eq!(world.ask(id, "hi").await, "failed", "{wire:?}");
        let end = world.received.of("turn/completed").remove(0);
        let words = "stream disconnected before completion: Incomplete response returned, reason: max_output_tokens";
        assert_eq!(end["turn"]["error"]["message"], words, "{wire:?}");
        let shown = world.received.of("item/agentMessage/delta");
        assert_eq!((shown.len(), world.model.calls().len()), (1, 1), "{wire:?}");
        let used = world.received.of("thread/tokenUsage/updated").pop().unwrap();
        assert_eq!(used["tokenUsage"]["total"]["totalTokens"], 120, "{wire:?}");
        assert_eq!(world.ask(id, "go on").await, "completed", "{wire:?}");
        let told = world.model.call(1).await.conversation();
        assert_eq!(told, ["user: hi", "assistant: half", "user: go on"], "{wire:?}");
    }
}

#[tokio::test]
async fn every_retry_notification_has_the_providers_message_and_delay() {
    for wire in Wire::ALL {
        let world = world(wire, &tries(1)).await;
        let busy = || status(429, wire.refusal("strange", "the reason")).header("retry-after", "0");
        world.model.reply(busy()).reply(busy());
        let id = world.start(false).await;
        assert_eq!(world.ask(id, "hi").await, "failed", "{wire:?}");
        let errors = world.received.of("error");
        assert_eq!(errors.len(), 2, "{wire:?}");
        for error in errors {
            let details = error["error"]["additionalDetails"].as_str().unwrap_or_default().to_owned();
            assert!(details.contains("provider `Scripted` said: unexpected status 429"), "{wire:?}: {details}");
            assert!(details.contains("the reason") && details.contains("it asks to wait 0 s"), "{wire:?}: {details}");
        }
    }
}
