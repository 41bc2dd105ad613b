//! The reviewer: a model that decides in place of the user. When it fails or times out, the action is denied.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use loomd_model::{CallHeaders, InputItem, ModelEvent, Reasoning, Request, Session, Tools};
use loomd_protocol::{
    GuardianApprovalReview, GuardianApprovalReviewStatus as Status, GuardianRiskLevel,
    ItemGuardianApprovalReviewCompletedNotification, ItemGuardianApprovalReviewStartedNotification, JsonValue,
    ReasoningEffort, ResponseItem, ServerNotification,
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

#[derive(Deserialize)]
struct Verdict {
    risk_level: GuardianRiskLevel,
    risk_score: u8,
    rationale: String,
}

/// Has the reviewer decide about an action. `Ok` allows it.
pub(crate) async fn judge(turn: &TurnCx, services: &Services, item_id: &str, action: JsonValue) -> Result<(), Denial> {
    let review_id = Uuid::new_v4().to_string();
    let started_at_ms = Timestamp::now().as_millisecond();
    let open =
        GuardianApprovalReview { status: Status::InProgress, risk_score: None, risk_level: None, rationale: None };
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
            Err(_) => failed("Automatic approval review timed out while evaluating the requested approval.".into()),
        }),
    };
    let status = match &verdict {
        None => Status::Aborted,
        Some(verdict) if verdict.risk_score < TOO_RISKY => Status::Approved,
        Some(_) => Status::Denied,
    };
    let review = GuardianApprovalReview {
        status,
        risk_score: verdict.as_ref().map(|verdict| verdict.risk_score),
        risk_level: verdict.as_ref().map(|verdict| verdict.risk_level),
        rationale: verdict.map(|verdict| verdict.rationale),
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
        decision_source: "guardian".into(),
    }))
    .await;
    match status {
        Status::Approved => Ok(()),
        Status::Aborted => Err(Denial::Cancelled),
        _ => Err(Denial::Declined(DENIED.into())),
    }
}

fn failed(rationale: String) -> Verdict {
    Verdict { risk_level: GuardianRiskLevel::High, risk_score: 100, rationale }
}

async fn ask(turn: &TurnCx, services: &Services, action: &JsonValue) -> Result<Verdict, String> {
    let profile = &turn.profile;
    let listed = profile.catalogue.list(true).iter().any(|model| model.model == MODEL);
    let model = if listed { MODEL.to_owned() } else { turn.settings.model.clone() };
    let info = profile.model(&model);
    let question = message("user", format!("The action, in the folder {}:\n\n{action:#}", turn.settings.cwd));
    let session_id = Uuid::now_v7().to_string();
    let request = Request {
        model,
        instructions: prompts::GUARDIAN_INSTRUCTIONS.into(),
        input: InputItem::new(&question).into_iter().collect(),
        tools: Arc::new(Tools::default()),
        parallel_tool_calls: false,
        reasoning: info
            .supports_reasoning_summaries
            .then_some(Reasoning { effort: Some(ReasoningEffort::Low), summary: None }),
        verbosity: None,
        output_schema: Some(schema()),
        service_tier: None,
        prompt_cache_key: session_id.clone(),
        headers: CallHeaders { session_id, subagent: Some("guardian".into()), ..CallHeaders::default() },
    };
    let mut session = Session::new(Arc::clone(&profile.provider), Arc::clone(&services.http), profile.identity.clone());
    let mut events = session.stream(&request).await.map_err(|error| error.message())?;
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
    parse(&text).ok_or_else(|| "the answer could not be understood".into())
}

/// The JSON object in the reviewer's answer.
fn parse(text: &str) -> Option<Verdict> {
    let whole = serde_json::from_str(text).ok();
    whole.or_else(|| serde_json::from_str(&text[text.find('{')?..=text.rfind('}')?]).ok())
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
            assert_eq!(parse(&text).map(|verdict| verdict.risk_score), Some(3), "{text}");
        }
        for text in ["", "no", "}{", r#"{"risk_score":3}"#] {
            assert!(parse(text).is_none(), "{text}");
        }
    }
}
