//! The reviewer: a model that decides in place of the user. When it fails or times out, the action is denied.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use loomd_ledger::Purpose;
use loomd_model::{CallHeaders, InputItem, ModelEvent, Reasoning, Request, Session, Tools};
use loomd_protocol::{
    GuardianApprovalReview, GuardianApprovalReviewStatus as Status, GuardianRiskLevel, GuardianUserAuthorization,
    GuardianWarningNotification, ItemGuardianApprovalReviewCompletedNotification,
    ItemGuardianApprovalReviewStartedNotification, JsonValue, ReasoningEffort, ResponseItem, ServerNotification,
};
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;
use uuid::Uuid;

use super::Denial;
use crate::message::{message, text_of};
use crate::prompts;
use crate::services::Services;
use crate::turn_cx::TurnCx;

/// The reviewer's model, if the catalogue has it; else the thread's.
const MODEL: &str = "gpt-5.4";

/// The timeout of a review.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(90);

/// The lowest risk score at which an action is denied.
const TOO_RISKY: u8 = 80;

/// The reason of a denial, for the model.
const DENIED: &str = "This action was rejected due to unacceptable risk. A reviewer that decides in place of the user \
    did not allow it. Do not try to reach the same thing in another way; find a safer one, or tell the user what is \
    needed and why.";

/// What the reviewer answers: an outcome, or a score for clients of the older release.
#[derive(Debug, Default, Deserialize)]
struct Verdict {
    outcome: Option<ReviewOutcome>,
    risk_score: Option<u8>,
    risk_level: Option<GuardianRiskLevel>,
    user_authorization: Option<GuardianUserAuthorization>,
    rationale: Option<String>,
    #[serde(skip)]
    timed_out: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum ReviewOutcome {
    Allow,
    Deny,
}

impl Verdict {
    fn status(&self) -> Status {
        let allows = match self.outcome {
            Some(outcome) => outcome == ReviewOutcome::Allow,
            None => self.risk_score.is_some_and(|score| score < TOO_RISKY),
        };
        match (self.timed_out, allows) {
            (true, _) => Status::TimedOut,
            (false, true) => Status::Approved,
            (false, false) => Status::Denied,
        }
    }

    /// The verdict in one line, for the user.
    fn warning(&self) -> String {
        let verdict = match self.status() {
            Status::Approved => "approved",
            Status::TimedOut => "timed out",
            _ => "denied",
        };
        let word = |value: JsonValue| value.as_str().unwrap_or("unknown").to_owned();
        let (risk, authorization) = (word(json!(self.risk_level)), word(json!(self.user_authorization)));
        let rationale = self.rationale.as_deref().unwrap_or("no reason was given");
        format!("Automatic approval review {verdict} (risk: {risk}, authorization: {authorization}): {rationale}")
    }
}

/// Has the reviewer decide about an action. `Ok` allows it.
pub(crate) async fn judge(turn: &TurnCx, services: &Services, item_id: &str, action: JsonValue) -> Result<(), Denial> {
    let review_id = Uuid::new_v4().to_string();
    let started_at_ms = Timestamp::now().as_millisecond();
    let open = GuardianApprovalReview {
        status: Status::InProgress,
        risk_score: None,
        risk_level: None,
        rationale: None,
        user_authorization: None,
    };
    turn.publish(ServerNotification::AutoApprovalReviewStarted(ItemGuardianApprovalReviewStartedNotification {
        thread_id: turn.thread_id.clone(),
        turn_id: turn.turn_id.clone(),
        target_item_id: item_id.into(),
        review: open,
        action: Some(action.clone()),
        review_id: review_id.clone(),
        started_at_ms,
    }))
    .await;
    let verdict = tokio::select! {
        biased;
        () = turn.cancel.cancelled() => None,
        asked = timeout(REVIEW_TIMEOUT, ask(turn, services, &action)) => Some(match asked {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(problem)) => failed(format!("Automatic approval review failed: {problem}")),
            Err(_) => Verdict {
                timed_out: true,
                ..failed("Automatic approval review timed out while evaluating the requested approval.".into())
            },
        }),
    };
    let status = verdict.as_ref().map_or(Status::Aborted, Verdict::status);
    if let Some(verdict) = &verdict {
        let warning = GuardianWarningNotification { thread_id: turn.thread_id.clone(), message: verdict.warning() };
        turn.publish(ServerNotification::GuardianWarning(warning)).await;
    }
    if status == Status::Denied {
        turn.denials.add(review_id.clone(), action.clone());
    }
    let verdict = verdict.unwrap_or_default();
    let review = GuardianApprovalReview {
        status,
        risk_score: verdict.risk_score,
        risk_level: verdict.risk_level,
        rationale: verdict.rationale,
        user_authorization: verdict.user_authorization,
    };
    turn.publish(ServerNotification::AutoApprovalReviewCompleted(ItemGuardianApprovalReviewCompletedNotification {
        thread_id: turn.thread_id.clone(),
        turn_id: turn.turn_id.clone(),
        target_item_id: item_id.into(),
        review,
        action: Some(action),
        review_id,
        started_at_ms,
        completed_at_ms: Timestamp::now().as_millisecond(),
        decision_source: "agent".into(),
    }))
    .await;
    match status {
        Status::Approved => Ok(()),
        Status::Aborted => Err(Denial::Cancelled),
        _ => Err(Denial::Declined(DENIED.into())),
    }
}

fn failed(rationale: String) -> Verdict {
    Verdict {
        outcome: Some(ReviewOutcome::Deny),
        risk_score: Some(100),
        risk_level: Some(GuardianRiskLevel::High),
        rationale: Some(rationale),
        ..Verdict::default()
    }
}

async fn ask(turn: &TurnCx, services: &Services, action: &JsonValue) -> Result<Verdict, String> {
    let profile = &turn.profile;
    let listed = profile.catalogue.list(true).iter().any(|model| model.model == MODEL);
    let model = if listed { MODEL.to_owned() } else { turn.settings.model.clone() };
    let info = profile.model(&model);
    let newer = profile.has_newer_tools();
    let mut question = format!("The action, in the folder {}:\n\n{action:#}", turn.settings.cwd);
    if turn.denials.is_approved(action) {
        question.push_str("\n\nIt was denied before. The user has looked at it since and allows exactly this action.");
    }
    let question = message("user", question);
    let session_id = Uuid::now_v7().to_string();
    let mut request = Request {
        model,
        instructions: match newer {
            true => prompts::guardian_instructions().into(),
            false => prompts::GUARDIAN_INSTRUCTIONS.into(),
        },
        input: InputItem::new(&question).into_iter().collect(),
        tools: Arc::new(Tools::default()),
        parallel_tool_calls: false,
        reasoning: info
            .supports_reasoning_summaries
            .then_some(Reasoning { effort: Some(ReasoningEffort::Low), summary: None }),
        verbosity: None,
        output_schema: Some(if newer { newer_schema() } else { schema() }),
        service_tier: None,
        prompt_cache_key: session_id.clone(),
        headers: CallHeaders { session_id, subagent: Some("guardian".into()), ..CallHeaders::default() },
    };
    let mut session = Session::new(Arc::clone(&profile.provider), Arc::clone(&services.http), profile.identity.clone());
    let meter = turn.begin_model_call(Purpose::Approval, &mut request);
    let mut events = session.stream(&request, meter).await.map_err(|error| error.message())?;
    let mut text = String::new();
    while let Some(event) = events.next().await {
        match event.map_err(|error| error.message())? {
            ModelEvent::ItemDone { item: item @ ResponseItem::Message { .. }, .. } => text = text_of(&item),
            ModelEvent::Completed { usage, .. } => {
                if let Some(usage) = usage {
                    turn.add_side_usage(&usage);
                }
                break;
            }
            _ => {}
        }
    }
    parse(&text, newer).ok_or_else(|| "the answer could not be understood".into())
}

/// The JSON object in the reviewer's answer. It has an outcome; for clients of the older release a score.
fn parse(text: &str, newer: bool) -> Option<Verdict> {
    let whole = serde_json::from_str(text).ok();
    let verdict: Verdict = whole.or_else(|| serde_json::from_str(&text[text.find('{')?..=text.rfind('}')?]).ok())?;
    match newer {
        true => verdict.outcome.is_some().then_some(Verdict { risk_score: None, ..verdict }),
        false => verdict.risk_score.is_some().then_some(Verdict { outcome: None, ..verdict }),
    }
}

fn newer_schema() -> JsonValue {
    json!({
        "type": "object",
        "properties": {
            "outcome": { "type": "string", "enum": ["allow", "deny"] },
            "risk_level": { "type": "string", "enum": ["low", "medium", "high", "critical"] },
            "user_authorization": { "type": "string", "enum": ["unknown", "low", "medium", "high"] },
            "rationale": { "type": "string" },
        },
        "required": ["outcome", "risk_level", "user_authorization", "rationale"],
        "additionalProperties": false,
    })
}

fn schema() -> JsonValue {
    json!({
        "type": "object",
        "properties": {
            "risk_level": { "type": "string", "enum": ["low", "medium", "high"] },
            "risk_score": { "type": "integer", "minimum": 0, "maximum": 100 },
            "rationale": { "type": "string" },
            "evidence": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": { "message": { "type": "string" }, "why": { "type": "string" } },
                    "required": ["message", "why"],
                    "additionalProperties": false,
                },
            },
        },
        "required": ["risk_level", "risk_score", "rationale", "evidence"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_parsed_from_the_json_object_in_the_text() {
        let object = r#"{"risk_level":"low","risk_score":3,"rationale":"r","evidence":[]}"#;
        for text in [object.to_owned(), format!("Well: {object} So.")] {
            assert_eq!(parse(&text, false).map(|verdict| verdict.status()), Some(Status::Approved), "{text}");
        }
        for text in ["", "no", "}{", r#"{"outcome":"allow"}"#] {
            assert!(parse(text, false).is_none(), "{text}");
        }
    }

    #[test]
    fn for_newer_clients_the_outcome_decides_and_suffices() {
        let status = |text: &str| parse(text, true).map(|verdict| verdict.status());
        assert_eq!(status(r#"{"outcome":"allow"}"#), Some(Status::Approved));
        assert_eq!(status(r#"{"outcome":"deny","risk_score":0}"#), Some(Status::Denied));
        assert_eq!(status(r#"{"risk_score":0,"rationale":"r"}"#), None);
        let denial = r#"{"outcome":"deny","risk_level":"critical","user_authorization":"low","rationale":"because"}"#;
        let warning = "Automatic approval review denied (risk: critical, authorization: low): because";
        assert_eq!(parse(denial, true).unwrap().warning(), warning);
    }
}
