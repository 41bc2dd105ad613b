//! An HTTP response with an error status. Each wire maps it to a [`ModelError`].

use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::{HeaderMap, StatusCode};
use loomd_protocol::{JsonValue, PlanType};

use crate::{ModelError, retry};

/// How much of a body that is not JSON an error shows.
const SHOWN_BODY: usize = 1000;

#[derive(Debug)]
pub(crate) struct Refusal<'a> {
    pub status: StatusCode,
    pub headers: &'a HeaderMap,
    pub body: &'a str,
    /// Without its query, which may contain a key.
    pub url: &'a str,
}

/// The error object of a body, in the usual form.
#[derive(Default)]
pub(crate) struct ErrorDetail {
    pub kind: Option<String>,
    pub code: Option<String>,
    pub message: Option<String>,
    pub plan_type: Option<PlanType>,
    pub resets_at: Option<i64>,
}

impl ErrorDetail {
    pub fn parse(body: &str) -> Self {
        let body: JsonValue = serde_json::from_str(body).unwrap_or_default();
        // Some servers wrap the body in a list.
        let error = if body.is_array() { &body[0]["error"] } else { &body["error"] };
        let text = |value: &JsonValue| value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        Self {
            kind: text(&error["type"]),
            code: text(&error["code"]),
            message: text(&error["message"]).or_else(|| text(error)),
            plan_type: text(&error["plan_type"]).map(Into::into),
            resets_at: error["resets_at"].as_f64().map(|seconds| seconds as i64),
        }
    }
}

impl ErrorDetail {
    /// As [`ErrorDetail::parse`], and also reads `detail`, `message`, `code` and `type` at the top level.
    pub fn parse_any(body: &str) -> Self {
        let mut error = Self::parse(body);
        let body: JsonValue = serde_json::from_str(body).unwrap_or_default();
        let detail = body.get("detail").map(|detail| match detail {
            JsonValue::String(text) => text.clone(),
            // Validation errors, one per field of the request.
            JsonValue::Array(problems) => {
                let words = problems.iter().filter_map(|problem| problem["msg"].as_str());
                words.collect::<Vec<_>>().join("; ")
            }
            other => other.to_string(),
        });
        let plain = body["message"].as_str().map(str::to_owned);
        error.message = error.message.or(plain).or(detail).filter(|text| !text.trim().is_empty());
        error.code = error.code.or_else(|| body["code"].as_str().map(Into::into));
        error.kind = error.kind.or_else(|| body["type"].as_str().map(Into::into));
        error
    }
}

/// Phrases, in lower case, that report an exceeded context window.
const TOO_LONG: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "context length of",
    "context window",
    "available context size",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input length and `max_tokens` exceed",
    "reduce the length of",
    "too many tokens",
    "maximum prompt length",
    "input token count",
];

/// Phrases, in lower case, that report an unreadable image.
const BAD_IMAGE: &[&str] = &[
    "does not represent a valid image",
    "could not process image",
    "invalid image",
    "unsupported image",
    "failed to load image",
    "image does not match the provided media type",
];

/// Describes a body that is an HTML page, as proxies and wrong URLs return it.
pub(crate) fn html(body: &str) -> Option<String> {
    let body = body.trim_start();
    let start = body.get(..body.floor_char_boundary(15))?.to_ascii_lowercase();
    if !start.starts_with("<!doctype html") && !start.starts_with("<html") {
        return None;
    }
    let lower = body.to_ascii_lowercase();
    let title = lower.find("<title>").map(|at| at + "<title>".len());
    let title = title.and_then(|at| Some(body[at..at + lower[at..].find("</title>")?].trim()));
    Some(match title.filter(|title| !title.is_empty() && title.len() <= SHOWN_BODY) {
        Some(title) => format!("an HTML page titled \"{title}\""),
        None => "an HTML page".into(),
    })
}

/// Whether a body reports an exceeded context window.
pub(crate) fn is_too_long(body: &str) -> bool {
    let body = body.to_ascii_lowercase();
    TOO_LONG.iter().any(|words| body.contains(words))
}

/// Whether a body reports an unreadable image.
pub(crate) fn is_bad_image(body: &str) -> bool {
    let body = body.to_ascii_lowercase();
    BAD_IMAGE.iter().any(|words| body.contains(words))
}

impl Refusal<'_> {
    pub fn bad_request(&self, error: &ErrorDetail) -> ModelError {
        let body = self.body.trim().to_owned();
        let message = error.message.clone().unwrap_or_else(|| body.clone());
        ModelError::BadRequest { message, body }
    }

    /// A 429 that is not about quota or a plan.
    pub fn too_many_requests(&self, error: &ErrorDetail) -> ModelError {
        let provider_message = self.provider_message(error);
        ModelError::TooManyRequests { request_id: self.request_id(), provider_message, retry_after: self.retry_after() }
    }

    /// A 500 without a meaning of its own.
    pub fn high_demand(&self, error: &ErrorDetail) -> ModelError {
        ModelError::HighDemand { provider_message: self.provider_message(error), retry_after: self.retry_after() }
    }

    /// The provider's own message, for errors whose text leaves it out. Includes the URL and the request id, for the
    /// operators of the provider.
    pub fn provider_message(&self, error: &ErrorDetail) -> Option<String> {
        Some(self.message(error))
    }

    /// A status without a meaning of its own.
    pub fn unexpected(&self, error: &ErrorDetail) -> ModelError {
        let (status, message) = (self.status.as_u16(), self.message(error));
        ModelError::Status { status, message, retry_after: self.retry_after() }
    }

    fn message(&self, error: &ErrorDetail) -> String {
        let mut message = match self.status {
            StatusCode::FORBIDDEN if self.body.contains("Cloudflare") && self.body.contains("blocked") => format!(
                "Access blocked by Cloudflare. This usually happens when connecting from a restricted region (status {})",
                self.status
            ),
            status => format!("unexpected status {status}: {}", self.detail(error)),
        };
        let ray = self.header("cf-ray").map(str::to_owned);
        let auth_error = self.header("x-openai-authorization-error").map(str::to_owned);
        for (what, value) in [
            ("url", Some(self.url.to_owned())),
            ("cf-ray", ray),
            ("request id", self.id_header()),
            ("auth error", auth_error),
            ("auth error code", self.auth_error_code()),
        ] {
            if let Some(value) = value {
                message += &format!(", {what}: {value}");
            }
        }
        message
    }

    fn detail(&self, error: &ErrorDetail) -> String {
        if let Some(message) = &error.message {
            return message.clone();
        }
        if let Some(page) = html(self.body) {
            return page;
        }
        match self.body.trim() {
            "" => "Unknown error".into(),
            short if short.len() <= SHOWN_BODY => short.into(),
            long => format!("{}...", &long[..long.floor_char_boundary(SHOWN_BODY)]),
        }
    }

    fn id_header(&self) -> Option<String> {
        self.header("x-request-id").or(self.header("x-oai-request-id")).map(Into::into)
    }

    fn request_id(&self) -> Option<String> {
        self.id_header().or_else(|| self.header("cf-ray").map(Into::into))
    }

    fn auth_error_code(&self) -> Option<String> {
        let json = STANDARD.decode(self.header("x-error-json")?).ok()?;
        let body: JsonValue = serde_json::from_slice(&json).ok()?;
        body["error"]["code"].as_str().map(Into::into)
    }

    /// The wait that `Retry-After` asks for; `None` unless the status is 429 or 5xx.
    pub fn retry_after(&self) -> Option<std::time::Duration> {
        let sensible = self.status == StatusCode::TOO_MANY_REQUESTS || self.status.is_server_error();
        sensible.then(|| retry::retry_after_header(self.headers, SystemTime::now()))?
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
    }
}
