//! Every way in which a call can fail: the result is the same over every wire.

use std::time::Duration;

use loomd_config::config_toml::WireApi;
use loomd_model::ModelError;
use loomd_testkit::ScriptedModel;
use loomd_testkit::model::ModelOutput::*;
use loomd_testkit::model::{Reply, event, hang_up, status};
use serde_json::{Value, json};

use super::super::{call, request};
use super::{WIRES, reply, scripted, session_over};

async fn failure(wire: WireApi, reply: Reply) -> ModelError {
    let model = ScriptedModel::start().await;
    model.reply(reply);
    let (_, error) = call(&mut session_over(wire, &model), &request(&["hi"])).await;
    error.expect("the call fails")
}

/// The error code for clients, and whether the call is retryable.
fn meaning(error: &ModelError) -> (Value, bool) {
    (serde_json::to_value(error.info()).unwrap(), error.retryable())
}

/// The body of an error response in the form of each wire.
fn body(wire: WireApi, kind: &str, message: &str) -> Value {
    scripted(wire).refusal(kind, message)
}

#[tokio::test]
async fn error_statuses_map_alike_on_every_wire() {
    let http = |status: u16| json!({ "httpConnectionFailed": { "httpStatusCode": status } });
    let limited = json!({ "responseTooManyFailedAttempts": { "httpStatusCode": 429 } });
    for (code, info, retryable) in [
        (400, "badRequest".into(), false),
        (401, "unauthorized".into(), false),
        (403, http(403), false),
        (404, http(404), false),
        (408, http(408), true),
        (409, http(409), true),
        (425, http(425), true),
        (501, http(501), false),
        (429, limited, true),
        (500, "internalServerError".into(), true),
        (502, http(502), true),
        (504, http(504), true),
    ] {
        for wire in WIRES {
            let error = failure(wire, status(code, body(wire, "strange", "the reason"))).await;
            assert_eq!(meaning(&error), (info.clone(), retryable), "{wire:?} {code}");
        }
    }
}

#[tokio::test]
async fn context_overflow_bad_images_and_quota_are_recognised() {
    use WireApi::{Anthropic, Chat};
    for (wire, code, body, info) in [
        (Chat, 400, json!({ "error": { "code": "context_length_exceeded" } }), "contextWindowExceeded"),
        (
            Chat,
            400,
            json!({ "error": { "message": "This model's maximum context length is 8192 tokens" } }),
            "contextWindowExceeded",
        ),
        (
            Chat,
            400,
            json!({ "error": { "code": 400, "type": "exceed_context_size_error", "n_ctx": 4096 } }),
            "contextWindowExceeded",
        ),
        (
            Chat,
            400,
            json!({ "object": "error", "message": "Please reduce the length of the messages", "code": 400 }),
            "contextWindowExceeded",
        ),
        (Chat, 402, json!({ "error": { "message": "Insufficient Balance" } }), "usageLimitExceeded"),
        (Chat, 429, json!({ "error": { "code": "insufficient_quota" } }), "usageLimitExceeded"),
        (Chat, 503, json!({ "error": { "code": "server_is_overloaded" } }), "serverOverloaded"),
        (
            Anthropic,
            400,
            body(Anthropic, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
            "contextWindowExceeded",
        ),
        (Anthropic, 400, body(Anthropic, "billing_error", "Your credit balance is too low"), "usageLimitExceeded"),
        (Anthropic, 413, body(Anthropic, "request_too_large", "Request exceeds the maximum size"), "badRequest"),
        (
            Anthropic,
            429,
            json!({ "type": "error", "error": { "type": "rate_limit_error", "error_code": "enforced_spend_limit_reached" } }),
            "usageLimitExceeded",
        ),
        (Anthropic, 529, body(Anthropic, "overloaded_error", "Overloaded"), "serverOverloaded"),
    ] {
        let error = failure(wire, status(code, body.clone())).await;
        assert_eq!(meaning(&error), (info.into(), false), "{wire:?} {body}");
    }
    let image = json!({ "error": { "type": "invalid_request_error", "message": "Could not process image" } });
    for wire in [Chat, Anthropic] {
        assert!(failure(wire, status(400, image.clone())).await.is_invalid_image());
    }
}

#[tokio::test]
async fn the_providers_message_is_found_in_every_known_form() {
    for (body, message) in [
        (json!({ "error": { "message": "why" } }), "why"),
        (json!({ "error": "why" }), "why"),
        (json!({ "message": "why", "type": "invalid_request" }), "why"),
        (json!({ "detail": "why" }), "why"),
        (
            json!({ "detail": [{ "loc": ["body", "x"], "msg": "Extra inputs are not permitted" }, { "msg": "b" }] }),
            "Extra inputs are not permitted; b",
        ),
        (json!("why"), "why"),
    ] {
        for wire in [WireApi::Chat, WireApi::Anthropic] {
            assert_eq!(failure(wire, status(422, body.clone())).await.message(), message, "{wire:?} {body}");
        }
    }
}

#[tokio::test]
async fn retry_after_is_reported_in_the_details() {
    for wire in WIRES {
        for (header, value, delay) in
            [("retry-after", "7", Duration::from_secs(7)), ("retry-after-ms", "250", Duration::from_millis(250))]
        {
            let refusal = status(429, body(wire, "rate_limit_error", "slow down")).header(header, value);
            assert_eq!(failure(wire, refusal).await.retry_after(), Some(delay), "{wire:?}");
        }
    }
}

#[tokio::test]
async fn broken_streams_are_retryable_errors() {
    let broken = json!({ "responseStreamDisconnected": { "httpStatusCode": null } });
    for wire in WIRES {
        for (says, message) in [
            (vec![Text(&["a"]), Cut], None),
            (vec![Text(&["a"]), Fail("it broke")], Some("stream disconnected before completion: it broke")),
            (vec![Cut], None),
        ] {
            let error = failure(wire, reply(wire, &says)).await;
            assert_eq!(meaning(&error), (broken.clone(), true), "{wire:?} {says:?}");
            assert!(message.is_none_or(|message| error.message() == message), "{wire:?} {says:?}: {error}");
        }
        let error = failure(wire, hang_up()).await;
        assert_eq!(meaning(&error), (json!({ "httpConnectionFailed": { "httpStatusCode": null } }), true), "{wire:?}");
        // An error in place of a stream.
        let error = failure(wire, status(200, body(wire, "server_error", "it broke"))).await;
        assert_eq!(
            (meaning(&error), error.message()),
            ((broken.clone(), true), "stream disconnected before completion: it broke".into()),
            "{wire:?}"
        );
    }
}

#[tokio::test]
async fn a_response_cut_at_the_output_limit_is_not_retryable() {
    for wire in WIRES {
        let model = ScriptedModel::start().await;
        let says = [Text(&["a"]), Length, Took { input: 100, cached: 40, output: 20, reasoning: 7 }];
        model.reply(reply(wire, &says));
        let (events, error) = call(&mut session_over(wire, &model), &request(&["hi"])).await;
        let error = error.unwrap();
        let words = "stream disconnected before completion: Incomplete response returned, reason: max_output_tokens";
        assert_eq!(
            (error.message(), error.retryable(), error.is_incomplete()),
            (words.into(), false, true),
            "{wire:?}"
        );
        assert_eq!(error.usage().map(|usage| usage.total_tokens), Some(120), "{wire:?}");
        let deltas = events.iter().filter(|event| matches!(event, loomd_model::ModelEvent::TextDelta { .. }));
        assert_eq!(deltas.count(), 1, "{wire:?}");
    }
}

#[tokio::test]
async fn an_untyped_error_event_is_reported() {
    for wire in WIRES {
        let event = "data: {\"error\":{\"code\":null,\"message\":\"it broke\"}}\n\n";
        let error = failure(wire, Reply::raw(event)).await;
        assert_eq!(error.message(), "stream disconnected before completion: it broke", "{wire:?}");
        let event = "data: {\"error\":{\"message\":\"maximum context length is 8\"}}\n\n";
        assert!(failure(wire, Reply::raw(event)).await.is_context_window_exceeded(), "{wire:?}");
    }
}

#[tokio::test]
async fn an_html_page_in_place_of_a_stream_is_named() {
    for wire in WIRES {
        let error = failure(wire, status(200, json!("<html><title>Sign in</title></html>"))).await;
        assert!(error.message().contains("the response is an HTML page titled \"Sign in\""), "{wire:?}: {error}");
        assert!(!error.retryable(), "{wire:?}");
    }
}

#[tokio::test]
async fn a_declined_request_is_reported_with_its_reason() {
    let event = |value: Value| event(&value);
    let details = json!({ "type": "refusal", "category": "cyber", "explanation": "No." });
    let stream = event(json!({ "type": "message_start", "message": { "id": "m" } }))
        + &event(json!({ "type": "message_delta", "delta": { "stop_reason": "refusal", "stop_details": details } }))
        + &event(json!({ "type": "message_stop" }));
    let error = failure(WireApi::Anthropic, Reply::raw(stream)).await;
    assert_eq!(
        (meaning(&error), error.message()),
        (("badRequest".into(), false), "The model declined to answer (cyber): No.".into())
    );
    let full = event(json!({ "type": "message_delta", "delta": { "stop_reason": "model_context_window_exceeded" } }))
        + &event(json!({ "type": "message_stop" }));
    assert!(failure(WireApi::Anthropic, Reply::raw(full)).await.is_context_window_exceeded());
}

#[tokio::test]
async fn garbage_in_a_stream_is_skipped() {
    for wire in [WireApi::Chat, WireApi::Anthropic] {
        let nonsense = "data: {\n\ndata: 5\n\ndata: {\"choices\":5,\"type\":[]}\n\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{}]}}]}\n\n\
            data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"x\"}}\n\n\
            data: {\"type\":\"content_block_stop\"}\n\n";
        let error = failure(wire, Reply::raw(nonsense)).await;
        assert!(error.retryable(), "{wire:?}");
    }
}
