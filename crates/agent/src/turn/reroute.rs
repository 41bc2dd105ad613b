//! Answers by another model than the one of the request.

use loomd_protocol::{ConfigWarningNotification, ModelRerouteReason, ModelReroutedNotification, ServerNotification};

use super::task::TurnTask;
use crate::message::message;
use crate::prompts;

impl TurnTask {
    /// Publishes once per turn that the provider answers with another model.
    pub(super) async fn answered_by(&mut self, model: String) {
        let asked = &self.cx.settings.model;
        if self.progress.rerouted || is_same_model(asked, &model) {
            return;
        }
        self.progress.rerouted = true;
        let warning = prompts::rerouted(asked, &model);
        // The protocol's only reason is one that the account's provider has. For others it would be a false claim.
        let notification = if self.session.provider().uses_account() {
            ServerNotification::ModelRerouted(ModelReroutedNotification {
                thread_id: self.cx.thread_id.clone(),
                turn_id: self.cx.turn_id.clone(),
                from_model: asked.clone(),
                to_model: model,
                reason: ModelRerouteReason::HighRiskCyberActivity,
            })
        } else {
            let summary = format!("The model {model} answers in place of {asked}.");
            ServerNotification::ConfigWarning(ConfigWarningNotification {
                summary,
                details: None,
                path: None,
                range: None,
            })
        };
        self.cx.publish(notification).await;
        self.append(&message("user", warning)).await;
    }
}

/// Whether two names are of the same model: routers prefix the provider's name, providers append a snapshot's date.
fn is_same_model(asked: &str, answered: &str) -> bool {
    let (asked, answered) = (bare(asked), bare(answered));
    let short = asked.len().min(answered.len());
    let (Some(start), Some(rest)) = (asked.get(..short), answered.get(short..)) else { return false };
    answered.get(..short).is_some_and(|same| same.eq_ignore_ascii_case(start))
        && (is_snapshot(rest) && asked.len() == short || is_snapshot(&asked[short..]) && rest.is_empty())
}

fn bare(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

/// Nothing, `-latest`, or a date.
fn is_snapshot(suffix: &str) -> bool {
    let Some(date) = suffix.strip_prefix(['-', '@', ':']) else { return suffix.is_empty() };
    let digits = date.bytes().filter(u8::is_ascii_digit).count();
    date == "latest" || (matches!(digits, 4 | 6 | 8) && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_prefix_or_snapshot_date_is_not_a_reroute() {
        for (asked, answered, same) in [
            ("gpt-5.4", "GPT-5.4", true),
            ("gpt-5.4", "gpt-5.4-2026-03-05", true),
            ("gpt-5.4-2026-03-05", "gpt-5.4", true),
            ("claude-haiku-4-5", "claude-haiku-4-5-20251001", true),
            ("openai/gpt-5.4", "gpt-5.4-latest", true),
            ("gpt-5.4", "gpt-5.4-mini", false),
            ("gpt-5.4", "gpt-5.2", false),
            ("gpt-5", "gpt-5.4", false),
            ("gpt-5.4", "", false),
            ("é", "a", false),
        ] {
            assert_eq!(is_same_model(asked, answered), same, "{asked} {answered}");
        }
    }
}
