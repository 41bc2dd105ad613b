//! The spans and log events of one turn, for the exporters of `[otel]`. Empty when none is configured.
//!
//! Spans have ids, names, counts and outcomes. Texts (prompts, arguments and outputs of tools) are only in log events,
//! and only with `log_user_prompt`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use loomd_ledger::Purpose;
use loomd_model::{CallMeter, CallOutcome, CallReport, Request, TraceHeaders};
use loomd_protocol::{
    CommandExecutionApprovalDecision, FileChangeApprovalDecision, FunctionCallOutputBody,
    FunctionCallOutputContentItem, SandboxPolicy, UserInput,
};
use loomd_telemetry::{Attributes, Span, SpanContext, SpanStatus, Telemetry};
use parking_lot::Mutex;

use crate::approval::{ApprovalDecision, ApprovalRequest};
use crate::metering::{Spending, purpose_name};
use crate::settings::{Profile, Settings};
use crate::tool_call::{Call, CallInput, ToolResult};
use crate::turn_origin::TurnOrigin;

/// The spans and log events of a turn.
#[derive(Default)]
pub(crate) struct TurnTrace(Option<Box<Traced>>);

struct Traced {
    telemetry: Telemetry,
    /// That of the turn, until it ends.
    span: Mutex<Span>,
    context: Option<SpanContext>,
    about: LogAbout,
}

/// What every log event has.
#[derive(Clone)]
struct LogAbout {
    thread_id: String,
    client: String,
    model: String,
}

/// The turn whose spans and log events are recorded.
pub(crate) struct TraceOf<'a> {
    /// The name of its span.
    pub name: &'static str,
    pub thread_id: String,
    pub turn_id: &'a str,
    pub client: &'a str,
    pub model: &'a str,
    pub origin: &'a TurnOrigin,
}

impl LogAbout {
    fn attributes(&self, telemetry: &Telemetry, more: Attributes) -> Attributes {
        let mut attributes = more;
        attributes.extend([
            ("conversation.id", self.thread_id.clone().into()),
            ("app.version", telemetry.version().to_owned().into()),
            ("originator", self.client.clone().into()),
            ("model", self.model.clone().into()),
            ("slug", self.model.clone().into()),
        ]);
        attributes
    }
}

impl TurnTrace {
    /// Begins the span of a turn.
    pub fn begin(telemetry: &Telemetry, of: TraceOf<'_>) -> Arc<Self> {
        if !telemetry.is_on() {
            return Arc::default();
        }
        let attributes = vec![
            ("thread.id", of.thread_id.clone().into()),
            ("turn.id", of.turn_id.to_owned().into()),
            ("client.name", of.client.to_owned().into()),
            ("gen_ai.request.model", of.model.to_owned().into()),
        ];
        let span = telemetry.server_span(of.name, of.origin.span.as_ref(), attributes);
        Arc::new(Self(Some(Box::new(Traced {
            telemetry: telemetry.clone(),
            context: span.context().cloned(),
            span: Mutex::new(span),
            about: LogAbout { thread_id: of.thread_id, client: of.client.into(), model: of.model.into() },
        }))))
    }

    /// Ends the span of the turn.
    pub fn end(&self, status: SpanStatus) {
        if let Some(traced) = &self.0 {
            traced.span.lock().end(status);
        }
    }

    /// Records input of the user.
    pub fn user_prompt(&self, input: &[UserInput]) {
        let Some(traced) = &self.0 else { return };
        let texts = input.iter().filter_map(|part| match part {
            UserInput::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        traced.log("codex.user_prompt", traced.context.as_ref(), |texts_allowed| {
            let prompt = texts.collect::<Vec<_>>().join("\n");
            let length = prompt.chars().count() as u64;
            let prompt = if texts_allowed { prompt.into() } else { "[REDACTED]".into() };
            vec![("prompt_length", length.into()), ("prompt", prompt)]
        });
    }

    /// Begins the span of a model call, puts its context into the headers of the request, and returns the meter that
    /// ends it and notes what the call used.
    pub fn model_call(&self, spending: &Arc<Spending>, purpose: Purpose, request: &mut Request) -> CallMeter {
        let Some(traced) = &self.0 else { return spending.meter(purpose) };
        let attributes = vec![
            ("purpose", purpose_name(purpose).into()),
            ("gen_ai.request.model", request.model.clone().into()),
            ("thread.id", traced.about.thread_id.clone().into()),
        ];
        let parent = traced.parent();
        let span = traced.telemetry.client_span("model_call", parent.as_ref(), attributes);
        request.headers.trace = span.context().map(|context| TraceHeaders {
            traceparent: context.traceparent(),
            tracestate: context.tracestate().map(Into::into),
        });
        let (telemetry, about, spending) = (traced.telemetry.clone(), traced.about.clone(), Arc::clone(spending));
        CallMeter::new(move |report| {
            call_ended(&telemetry, &about, span, &report);
            spending.call_ended(purpose, report);
        })
    }

    /// Begins the span of a tool call.
    pub fn tool_call(&self, call: &Call) -> ToolCallTrace<'_> {
        let Some(traced) = &self.0 else { return ToolCallTrace { traced: None, span: Span::default(), begun: None } };
        let attributes = vec![
            ("gen_ai.tool.name", call.name.clone().into()),
            ("gen_ai.tool.call.id", call.id.clone().into()),
            ("thread.id", traced.about.thread_id.clone().into()),
        ];
        let span = traced.telemetry.internal_span("tool_call", traced.context.as_ref(), attributes);
        ToolCallTrace { traced: Some(traced), span, begun: Some(Instant::now()) }
    }

    /// Begins the span of an approval: below the tool call that needs it, if that is known.
    pub fn approval(&self, request: &ApprovalRequest) -> ApprovalTrace<'_> {
        let Some(traced) = &self.0 else { return ApprovalTrace { traced: None, span: Span::default(), call_id: None } };
        let call_id = match request {
            ApprovalRequest::Command(params) => Some(params.item_id.clone()),
            ApprovalRequest::Patch(params) => Some(params.item_id.clone()),
            _ => None,
        };
        let mut attributes: Attributes =
            vec![("kind", request.name().into()), ("thread.id", traced.about.thread_id.clone().into())];
        attributes.extend(call_id.clone().map(|id| ("gen_ai.tool.call.id", id.into())));
        let parent = traced.parent();
        let span = traced.telemetry.internal_span("approval", parent.as_ref(), attributes);
        ApprovalTrace { traced: Some(traced), span, call_id }
    }
}

impl Traced {
    /// The current span, as that of a tool call, else that of the turn.
    fn parent(&self) -> Option<SpanContext> {
        loomd_telemetry::current().or_else(|| self.context.clone())
    }

    /// Records a log event. `attributes` is told whether texts are allowed.
    fn log(&self, name: &'static str, context: Option<&SpanContext>, attributes: impl FnOnce(bool) -> Attributes) {
        let texts = self.telemetry.log_user_prompt();
        self.telemetry.log(name, context, || self.about.attributes(&self.telemetry, attributes(texts)));
    }
}

/// Records that a thread was started or loaded.
pub(crate) fn conversation_starts(telemetry: &Telemetry, thread_id: String, settings: &Settings, profile: &Profile) {
    let current = loomd_telemetry::current();
    telemetry.log("codex.conversation_starts", current.as_ref(), || {
        let policy = serde_json::to_value(&settings.approval_policy).ok();
        let policy = policy.and_then(|policy| policy.as_str().map(str::to_owned));
        let attributes = vec![
            ("provider_name", profile.provider.name().to_owned().into()),
            ("approval_policy", policy.unwrap_or_else(|| "granular".into()).into()),
            ("sandbox_policy", sandbox_policy_name(&settings.sandbox).into()),
        ];
        let about = LogAbout { thread_id, client: profile.client.clone(), model: settings.model.clone() };
        about.attributes(telemetry, attributes)
    });
}

/// An open tool call.
pub(crate) struct ToolCallTrace<'a> {
    traced: Option<&'a Traced>,
    span: Span,
    begun: Option<Instant>,
}

impl ToolCallTrace<'_> {
    pub fn context(&self) -> Option<SpanContext> {
        self.span.context().cloned()
    }

    /// Ends the span and records the result. `stopped`: the turn was interrupted.
    pub fn end(mut self, call: &Call, result: &ToolResult, stopped: bool) {
        let Some(traced) = self.traced else { return };
        let duration = self.begun.map(|begun| begun.elapsed()).unwrap_or_default();
        traced.log("codex.tool_result", self.span.context(), |texts| {
            let output = match result {
                Ok(output) => text_of(&output.body),
                Err(error) => error.clone(),
            };
            let (CallInput::Arguments(arguments) | CallInput::Text(arguments) | CallInput::Search(arguments)) =
                &call.input;
            let mut attributes: Attributes = vec![
                ("tool_name", call.name.clone().into()),
                ("call_id", call.id.clone().into()),
                ("duration_ms", millis(duration).into()),
                ("success", if result.is_ok() { "true" } else { "false" }.into()),
                ("arguments_length", (arguments.len() as u64).into()),
                ("output_length", (output.len() as u64).into()),
            ];
            if texts {
                attributes.extend([("arguments", arguments.clone().into()), ("output", output.into())]);
            }
            attributes
        });
        self.span.end(match result {
            _ if stopped => SpanStatus::Cancelled,
            Ok(_) => SpanStatus::Completed,
            Err(_) => SpanStatus::Failed("the tool call failed".into()),
        });
    }
}

/// An open approval.
pub(crate) struct ApprovalTrace<'a> {
    traced: Option<&'a Traced>,
    span: Span,
    call_id: Option<String>,
}

impl ApprovalTrace<'_> {
    /// Ends the span with the decision; `None` when there was none.
    pub fn end(mut self, decision: Option<&ApprovalDecision>) {
        let Some(traced) = self.traced else { return };
        let Some(decision) = decision else { return self.span.end(SpanStatus::Cancelled) };
        let decided = decision_name(decision);
        if let Some(call_id) = self.call_id.take() {
            traced.log("codex.tool_decision", self.span.context(), |_| {
                vec![("call_id", call_id.into()), ("decision", decided.into()), ("source", "User".into())]
            });
        }
        self.span.set("decision", decided);
        self.span.end(SpanStatus::Completed);
    }
}

/// The names of the reference for decisions about commands and patches; other requests are answered.
fn decision_name(decision: &ApprovalDecision) -> &'static str {
    use {CommandExecutionApprovalDecision as Command, FileChangeApprovalDecision as Patch};
    match decision {
        ApprovalDecision::Command(Command::Accept) | ApprovalDecision::Patch(Patch::Accept) => "approved",
        ApprovalDecision::Command(Command::AcceptForSession) | ApprovalDecision::Patch(Patch::AcceptForSession) => {
            "approved_for_session"
        }
        ApprovalDecision::Command(
            Command::AcceptWithExecpolicyAmendment { .. } | Command::ApplyNetworkPolicyAmendment { .. },
        ) => "approved_with_amendment",
        ApprovalDecision::Command(Command::Decline) | ApprovalDecision::Patch(Patch::Decline) => "denied",
        ApprovalDecision::Command(Command::Cancel) | ApprovalDecision::Patch(Patch::Cancel) => "abort",
        _ => "answered",
    }
}

/// Ends the span of a model call and records its log events.
fn call_ended(telemetry: &Telemetry, about: &LogAbout, mut span: Span, report: &CallReport) {
    let status = match report.outcome {
        CallOutcome::Completed => Some(200),
        CallOutcome::Failed | CallOutcome::Cancelled => report.http_status,
    };
    let duration = millis(report.duration);
    telemetry.log("codex.api_request", span.context(), || {
        let mut attributes: Attributes = vec![("duration_ms", duration.into())];
        attributes.extend(status.map(|status| ("http.response.status_code", u64::from(status).into())));
        about.attributes(telemetry, attributes)
    });
    let usage = report.usage.as_ref();
    if report.outcome != CallOutcome::Cancelled {
        telemetry.log("codex.sse_event", span.context(), || {
            let completed = report.outcome == CallOutcome::Completed;
            let kind = if completed { "response.completed" } else { "response.failed" };
            let mut attributes: Attributes = vec![("event.kind", kind.into()), ("duration_ms", duration.into())];
            attributes.extend(usage.into_iter().flat_map(|usage| {
                [
                    ("input_token_count", usage.input_tokens.into()),
                    ("output_token_count", usage.output_tokens.into()),
                    ("cached_token_count", usage.cached_input_tokens.into()),
                    ("reasoning_token_count", usage.reasoning_output_tokens.into()),
                    ("tool_token_count", usage.total_tokens.into()),
                ]
            }));
            about.attributes(telemetry, attributes)
        });
    }
    span.set("gen_ai.provider.name", report.provider.clone());
    if let Some(usage) = usage {
        span.set("gen_ai.usage.input_tokens", usage.input_tokens);
        span.set("gen_ai.usage.output_tokens", usage.output_tokens);
        span.set("gen_ai.usage.cache_read.input_tokens", usage.cached_input_tokens);
    }
    if let Some(status) = status {
        span.set("http.response.status_code", u64::from(status));
    }
    span.end(match report.outcome {
        CallOutcome::Completed => SpanStatus::Completed,
        CallOutcome::Cancelled => SpanStatus::Cancelled,
        // The provider's text may quote the request.
        CallOutcome::Failed => SpanStatus::Failed("the model call failed".into()),
    });
}

/// The name of a policy as the configuration spells it.
fn sandbox_policy_name(policy: &SandboxPolicy) -> &'static str {
    match policy {
        SandboxPolicy::DangerFullAccess => "danger-full-access",
        SandboxPolicy::ReadOnly { .. } => "read-only",
        SandboxPolicy::ExternalSandbox { .. } => "external-sandbox",
        SandboxPolicy::WorkspaceWrite { .. } => "workspace-write",
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The texts of an output, for a log event.
fn text_of(body: &FunctionCallOutputBody) -> String {
    match body {
        FunctionCallOutputBody::Text(text) => text.clone(),
        FunctionCallOutputBody::Items(items) => {
            let texts = items.iter().filter_map(|item| match item {
                FunctionCallOutputContentItem::InputText { text } => Some(text.as_str()),
                FunctionCallOutputContentItem::InputImage { .. } => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}
