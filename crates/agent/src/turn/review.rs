//! A review turn: a reviewer with a conversation of its own, whose findings become an item and a message of the thread.

use std::sync::Arc;

use loomd_model::Session;
use loomd_protocol::{AskForApproval, ContentItem, ModeKind, ResponseItem, ReviewTarget, ThreadItem, UserInput};
use loomd_store::rollout::{
    AgentMessage, EnteredReviewMode, Event, ExitedReviewMode, Record, ReviewOutput, TokenUsageInfo,
};
use uuid::Uuid;

use super::task::{Failure, ModelScope, Progress, TurnTask};
use super::work::TurnInput;
use crate::conversation::Conversation;
use crate::guard::ActionCx;
use crate::inbox::Inbox;
use crate::message::message;
use crate::prompts::{self, ReviewOutcome};

/// The id of the message with the result, which clients of the reference know.
const MESSAGE_ID: &str = "review_rollout_assistant";

/// The result of a review without output.
const NO_ANSWER: &str = "Reviewer failed to output a response.";

/// The message of a review that was interrupted or failed.
const CUT_SHORT: &str = "Review was interrupted. Please re-run /review and wait for it to complete.";

impl TurnTask {
    pub(super) async fn review(&mut self, target: ReviewTarget, hint: String, prompt: String) -> Result<(), Failure> {
        let id = self.cx.turn_id.clone();
        let entered = ThreadItem::EnteredReviewMode { id: id.clone(), review: hint.clone() };
        self.cx.started(entered.clone()).await;
        let event = EnteredReviewMode { target, user_facing_hint: Some(hint), item_id: Some(id.clone()) };
        self.cx.completed(entered, Some(Event::EnteredReviewMode(event))).await;

        let (reviewed, answer) = self.run_reviewer(prompt).await;
        let output = answer.as_deref().filter(|_| reviewed.is_ok()).map(parse);
        let shown = output.as_ref().map(render).filter(|text| !text.is_empty());
        let text = shown.clone().unwrap_or_else(|| NO_ANSWER.into());

        let exited = ThreadItem::ExitedReviewMode { id: id.clone(), review: text.clone() };
        self.cx.started(exited.clone()).await;
        let event = ExitedReviewMode { review_output: output, item_id: Some(id) };
        self.cx.completed(exited, Some(Event::ExitedReviewMode(event))).await;

        let said = if reviewed.is_ok() { text } else { CUT_SHORT.into() };
        let report = match &shown {
            Some(text) => ReviewOutcome::Finished(text),
            None => ReviewOutcome::Interrupted,
        };
        self.append(&message("user", prompts::review_report(report))).await;
        self.append_message(said).await;
        reviewed
    }

    /// Runs the reviewer; its last message, and whether it completed.
    async fn run_reviewer(&mut self, prompt: String) -> (Result<(), Failure>, Option<String>) {
        let mut settings = self.cx.settings.clone();
        settings.approval_policy = AskForApproval::Never;
        settings.mode = ModeKind::Default;
        settings.mode_instructions = None;
        // Effort and service tier of the last turn were chosen for other work.
        settings.reasoning_effort = None;
        settings.service_tier = None;
        if let Some(model) = &self.cx.profile.config.config.review_model {
            settings.model.clone_from(model);
        }
        let cx = Arc::new(self.cx.with(settings));
        let action = ActionCx { turn: Arc::clone(&cx), ..self.toolbox.cx().action.clone() };
        let session = Session::new(
            Arc::clone(&self.cx.profile.provider),
            Arc::clone(&self.services.http),
            self.cx.profile.identity.clone(),
        );
        // Its usage adds to the thread's total; its context window is its own.
        let mut conversation = Conversation::default();
        conversation.usage =
            self.conversation.usage.map(|used| TokenUsageInfo { last_token_usage: Default::default(), ..used });
        let mut reviewer = TurnTask {
            toolbox: Arc::new(self.toolbox.for_review(action)),
            cx,
            services: Arc::clone(&self.services),
            view: Arc::clone(&self.view),
            conversation,
            session,
            inbox: Arc::new(Inbox::default()),
            scope: ModelScope {
                session_id: Uuid::now_v7().to_string(),
                subagent: Some("review".into()),
                instructions: prompts::REVIEW_INSTRUCTIONS.into(),
                shows_messages: false,
                records: false,
            },
            meta: None,
            subagents: Vec::new(),
            rate_limits: self.rate_limits.clone(),
            goals: Arc::clone(&self.goals),
            replaced: Arc::default(),
            progress: Progress::default(),
        };
        let input = vec![UserInput::Text { text: prompt, text_elements: Vec::new() }];
        let reviewed = reviewer.answer(TurnInput::User(input.into()), None).await;
        if let Some(used) = reviewer.conversation.usage {
            self.conversation.usage.get_or_insert(used).total_token_usage = used.total_token_usage;
        }
        (reviewed, reviewer.progress.last_message)
    }

    /// Adds an assistant message to the conversation and publishes it as an item.
    async fn append_message(&mut self, text: String) {
        let item =
            ThreadItem::AgentMessage { id: MESSAGE_ID.into(), text: text.clone(), phase: None, memory_citation: None };
        self.cx.started(item.clone()).await;
        let event = AgentMessage { message: text.clone(), item_id: Some(MESSAGE_ID.into()), ..AgentMessage::default() };
        let said = ResponseItem::Message {
            role: "assistant".into(),
            content: vec![ContentItem::OutputText { text: text.clone() }],
            end_turn: None,
            phase: None,
            id: None,
        };
        self.conversation.push(&said);
        self.cx.record(&[Record::EventMsg(event.into()), Record::ResponseItem(said)]).await;
        self.cx.show_completed(item).await;
        self.progress.last_message = Some(text);
    }
}

/// The findings in a reviewer's message: the JSON object in it, else the whole text as the explanation.
fn parse(text: &str) -> ReviewOutput {
    let object = || Some(&text[text.find('{')?..=text.rfind('}')?]);
    serde_json::from_str(text)
        .ok()
        .or_else(|| serde_json::from_str(object()?).ok())
        .unwrap_or_else(|| ReviewOutput { overall_explanation: text.trim().into(), ..ReviewOutput::default() })
}

/// The findings as text.
fn render(output: &ReviewOutput) -> String {
    let mut parts = Vec::new();
    let explanation = output.overall_explanation.trim();
    if !explanation.is_empty() {
        parts.push(explanation.to_owned());
    }
    match output.findings.len() {
        0 => {}
        1 => parts.push("Review comment:".into()),
        _ => parts.push("Full review comments:".into()),
    }
    parts.extend(output.findings.iter().map(|finding| {
        let location = &finding.code_location;
        let (start, end) = (location.line_range.start, location.line_range.end);
        let mut text = format!("- {} — {}:{start}-{end}", finding.title, location.absolute_file_path);
        for line in finding.body.lines() {
            text.push_str("\n  ");
            text.push_str(line);
        }
        text
    }));
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(render(&parse(text)), expected, "{text}");
    }

    #[test]
    fn findings_of_a_review_are_rendered_as_text() {
        check("plain words\n", "plain words");
        check("", "");
        let finding = |title: &str| {
            format!(
                r#"{{"title":"{title}","body":"a\nb","confidence_score":0.5,"priority":1,
                "code_location":{{"absolute_file_path":"/r/{title}","line_range":{{"start":1,"end":2}}}}}}"#
            )
        };
        let one = format!(r#"Here: {{"findings":[{}],"overall_explanation":"Fine."}} Done."#, finding("T"));
        check(&one, "Fine.\n\nReview comment:\n\n- T — /r/T:1-2\n  a\n  b");
        let two = format!(r#"{{"findings":[{},{}]}}"#, finding("T"), finding("U"));
        check(&two, "Full review comments:\n\n- T — /r/T:1-2\n  a\n  b\n\n- U — /r/U:1-2\n  a\n  b");
    }
}
