//! Every way in which a call can be refused or fail, and the resulting [`ModelError`].

use std::time::Duration;

use loomd_model::ModelError;
use loomd_protocol::CodexErrorInfo;
use loomd_testkit::ScriptedModel;
use loomd_testkit::model::{Reply, error as refused, failed, incomplete, rate_limited, server_error, status};
use serde_json::{Value, json};

use super::{config, error};

const OVERLOADED: &str = "Selected model is at capacity. Please try a different model.";
const PLUS: &str = "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.";
const ROOM: &str =
    "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.";

/// Calls once; `URL` in the message stands for the address.
async fn check(reply: Reply, retryable: bool, info: &str, message: &str) -> ModelError {
    let model = ScriptedModel::start().await;
    model.reply(reply);
    let error = error(&config(&model)).await;
    let url = format!("{}/responses", model.base_url());
    let found = (error.retryable(), info_text(&error.info()), error.message().replace(&url, "URL"));
    assert_eq!(found, (retryable, info.to_owned(), message.to_owned()));
    assert_eq!(model.calls().len(), 1);
    error
}

fn info_text(info: &CodexErrorInfo) -> String {
    match serde_json::to_value(info).unwrap() {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn http(status: Option<u16>) -> String {
    json!({ "httpConnectionFailed": { "httpStatusCode": status } }).to_string()
}

fn cut() -> String {
    json!({ "responseStreamDisconnected": { "httpStatusCode": null } }).to_string()
}

#[tokio::test]
async fn bad_requests_report_the_providers_message() {
    let raw = r#"{"error":{"code":"x","message":"bad field"}}"#;
    let error = check(refused(400, "x", "bad field"), false, "badRequest", "bad field").await;
    assert_eq!((error.details("p"), error.http_status()), (Some(raw.into()), Some(400)));
    let error = check(status(400, json!("just text")), false, "badRequest", "just text").await;
    assert_eq!(error.details("p"), None);
    let image = "The image data you provided does not represent a valid image. Try again.";
    let words = "Invalid image in your last message. Please remove it and try again.";
    let error = check(refused(400, "x", image), false, "badRequest", words).await;
    assert!(error.is_invalid_image());
    let error = check(refused(400, "context_length_exceeded", "too long"), false, "contextWindowExceeded", ROOM).await;
    assert!(error.is_context_window_exceeded());
    let llama = json!({ "error": { "code": 400, "type": "exceed_context_size_error", "message": "the request exceeds", "n_ctx": 4096 } });
    check(status(400, llama), false, "contextWindowExceeded", ROOM).await;
    for words in [
        "This model's maximum context length is 8192 tokens.",
        "prompt is too long: 9 tokens > 8 maximum",
        "Your input exceeds the context window of this model.",
    ] {
        let error = check(refused(400, "invalid_request_error", words), false, "contextWindowExceeded", ROOM).await;
        assert!(error.details("p").unwrap().contains(words), "{error:?}");
    }
}

#[tokio::test]
async fn other_statuses_report_status_and_message() {
    let unauthorized = "unexpected status 401 Unauthorized: no key, url: URL";
    let error = check(refused(401, "x", "no key"), false, "unauthorized", unauthorized).await;
    let hint = "provider `p`: the credentials were not accepted; check the key or sign in again";
    assert_eq!(error.details("p").unwrap(), hint);
    let missing = "unexpected status 404 Not Found: nope, url: URL";
    check(refused(404, "x", " nope "), false, &http(Some(404)), missing).await;
    let gateway = "unexpected status 502 Bad Gateway: bad gateway, url: URL";
    let error = check(status(502, json!("bad gateway\n")), true, &http(Some(502)), gateway).await;
    assert_eq!(error.http_status(), Some(502));
    let silent = "unexpected status 403 Forbidden: Unknown error, url: URL";
    check(status(403, json!("")), false, &http(Some(403)), silent).await;
    let long = format!("unexpected status 504 Gateway Timeout: {}..., url: URL", "ä".repeat(500));
    check(status(504, json!("ä".repeat(501))), true, &http(Some(504)), &long).await;
    let blocked = "Access blocked by Cloudflare. This usually happens when connecting from a restricted region (status 403 Forbidden), url: URL, cf-ray: ray";
    let page = status(403, json!("<html>Cloudflare: you are blocked</html>")).header("cf-ray", "ray");
    check(page, false, &http(Some(403)), blocked).await;
    let page = status(502, json!("<!doctype html>\n<html><head><title>Bad gateway</title></head></html>"));
    let words = "unexpected status 502 Bad Gateway: an HTML page titled \"Bad gateway\", url: URL";
    check(page, true, &http(Some(502)), words).await;
}

#[tokio::test]
async fn headers_of_an_error_response_are_reported() {
    let reply = refused(401, "x", "no key")
        .header("cf-ray", "ray")
        .header("x-oai-request-id", "req")
        .header("x-openai-authorization-error", "expired")
        .header("x-error-json", "eyJlcnJvciI6eyJjb2RlIjoidG9rZW5fZXhwaXJlZCJ9fQ==");
    let words = "unexpected status 401 Unauthorized: no key, url: URL, cf-ray: ray, request id: req, auth error: expired, auth error code: token_expired";
    check(reply, false, "unauthorized", words).await;
}

#[tokio::test]
async fn too_many_requests_are_retryable_with_details() {
    let info = json!({ "responseTooManyFailedAttempts": { "httpStatusCode": 429 } }).to_string();
    let words = "exceeded retry limit, last status: 429 Too Many Requests";
    let error = check(rate_limited(None), true, &info, words).await;
    assert_eq!(error.retry_after(), None);
    let error = check(rate_limited(Some(7)), true, &info, words).await;
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    let details = error.details("p").unwrap();
    let said = "provider `p` said: unexpected status 429 Too Many Requests: slow down, url: ";
    assert!(details.starts_with(said) && details.ends_with("; it asks to wait 7 s"), "{details}");
    let error = check(rate_limited(Some(3600)), false, &info, words).await;
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
    let named = rate_limited(None).header("x-request-id", "req-7");
    check(named, true, &info, &format!("{words}, request id: req-7")).await;
}

#[tokio::test]
async fn usage_limits_report_plan_and_rate_limits() {
    let body = json!({ "error": { "type": "usage_limit_reached", "plan_type": "pro", "resets_at": 1.0e30 } });
    let reply =
        status(429, body).header("x-codex-active-limit", "codex_big").header("x-codex-big-primary-used-percent", "100");
    let words = "You've hit your usage limit. Visit https://chatgpt.com/codex/settings/usage to purchase more credits or try again later.";
    let error = check(reply, false, "usageLimitExceeded", words).await;
    let limits = error.rate_limits().unwrap();
    let used = limits.primary.as_ref().map(|window| window.used_percent);
    assert_eq!((limits.limit_id.as_deref(), used), (Some("codex_big"), Some(100)));

    let named = status(429, json!({ "error": { "type": "usage_limit_reached" } })).header("x-codex-limit-name", "Big");
    let words = "You've hit your usage limit for Big. Switch to another model now, or try again later.";
    check(named, false, "usageLimitExceeded", words).await;

    let promo = status(429, json!({ "error": { "type": "usage_limit_reached" } }));
    let words = "You've hit your usage limit. Buy more, or try again later.";
    check(promo.header("x-codex-promo-message", "Buy more"), false, "usageLimitExceeded", words).await;

    check(status(429, json!({ "error": { "type": "usage_not_included" } })), false, "usageLimitExceeded", PLUS).await;
}

#[tokio::test]
async fn server_errors_are_mapped_by_status_and_code() {
    let demand = "We're currently experiencing high demand, which may cause temporary errors.";
    let error = check(server_error(), true, "internalServerError", demand).await;
    let details = error.details("p").unwrap();
    assert!(
        details.starts_with("provider `p` said: unexpected status 500 Internal Server Error: it broke, url: "),
        "{details}"
    );
    for code in ["server_is_overloaded", "slow_down"] {
        check(refused(503, code, "x"), false, "serverOverloaded", OVERLOADED).await;
    }
    let plain = "unexpected status 503 Service Unavailable: x, url: URL";
    let error = check(refused(503, "other", "x").header("retry-after", "2"), true, &http(Some(503)), plain).await;
    assert_eq!(error.retry_after(), Some(Duration::from_secs(2)));
}

#[tokio::test]
async fn failed_responses_are_mapped_by_code() {
    let quota = "Quota exceeded. Check your plan and billing details.";
    check(failed("context_length_exceeded", "x"), false, "contextWindowExceeded", ROOM).await;
    check(failed("strange", "maximum context length is 8"), false, "contextWindowExceeded", ROOM).await;
    check(failed("insufficient_quota", "x"), false, "usageLimitExceeded", quota).await;
    check(failed("usage_not_included", "x"), false, "usageLimitExceeded", PLUS).await;
    check(failed("invalid_prompt", "the reason"), false, "badRequest", "the reason").await;
    check(failed("invalid_prompt", ""), false, "badRequest", "Invalid request.").await;
    check(failed("slow_down", "x"), false, "serverOverloaded", OVERLOADED).await;
    check(failed("server_is_overloaded", "x"), false, "serverOverloaded", OVERLOADED).await;
    let prefix = "stream disconnected before completion";
    check(failed("strange", "the reason"), true, &cut(), &format!("{prefix}: the reason")).await;
    let bare = Reply::event(json!({ "type": "response.failed", "response": {} }));
    check(bare, true, &cut(), &format!("{prefix}: response.failed event received")).await;
    let words = "Please try again in 1.5s.";
    let error =
        check(failed("rate_limit_exceeded", words), true, "rateLimitExceeded", &format!("{prefix}: {words}")).await;
    assert_eq!(error.retry_after(), Some(Duration::from_millis(1500)));
    let stopped = format!("{prefix}: Incomplete response returned, reason: content_filter");
    check(incomplete("content_filter"), false, &cut(), &stopped).await;
    let stopped = format!("{prefix}: Incomplete response returned, reason: unknown");
    check(Reply::event(json!({ "type": "response.incomplete", "response": {} })), true, &cut(), &stopped).await;
    let nameless = Reply::event(json!({ "type": "response.completed", "response": {} }));
    let words = format!("{prefix}: failed to parse ResponseCompleted: missing field `id` at line 1 column 42");
    check(nameless, true, &cut(), &words).await;
    let plain = Reply::event(json!({ "type": "error", "code": "invalid_prompt", "message": "no" })).unfinished();
    check(plain, false, "badRequest", "no").await;
    let untyped = |error: Value| Reply::event(json!({ "error": error })).unfinished();
    check(untyped(json!({ "message": "the reason" })), true, &cut(), &format!("{prefix}: the reason")).await;
    check(untyped(json!("the reason")), true, &cut(), &format!("{prefix}: the reason")).await;
    check(untyped(json!({ "type": "exceed_context_size_error" })), false, "contextWindowExceeded", ROOM).await;
}

#[tokio::test]
async fn a_response_that_completes_after_a_failure_succeeds() {
    let model = ScriptedModel::start().await;
    model.reply(failed("strange", "x").then(loomd_testkit::model::completed(Default::default())));
    let (events, error) = super::call(&mut super::session(&config(&model)), &super::request(&["hi"])).await;
    assert_eq!((events.len(), error), (1, None));
}
