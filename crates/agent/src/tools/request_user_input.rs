//! `request_user_input`: the model asks the user a few questions with ready answers.

use loomd_config::Feature;
use loomd_model::ToolSpec;
use loomd_protocol::{ModeKind, ToolRequestUserInputOption, ToolRequestUserInputParams, ToolRequestUserInputQuestion};
use serde::Deserialize;

use super::cx::ToolCx;
use super::scope::{Role, ToolScope};
use super::spec::{array, function, object, string};
use super::tool::{Tool, ToolFuture, ToolName};
use crate::tool_call::Call;

pub(super) struct RequestUserInput;

#[derive(Deserialize)]
struct Args {
    questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Question {
    id: String,
    header: String,
    question: String,
    #[serde(default)]
    options: Vec<ToolRequestUserInputOption>,
    /// Not in the schema, but accepted.
    #[serde(default, rename = "isSecret")]
    is_secret: bool,
}

/// The output when the turn was interrupted.
const CANCELLED: &str = "request_user_input was cancelled before receiving a response";

impl Tool for RequestUserInput {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("request_user_input")
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        let option = object(
            &[
                ("label", string("What the user picks, a few words.")),
                ("description", string("What picking it means, one sentence.")),
            ],
            &["label", "description"],
        );
        let question = object(
            &[
                ("id", string("A name for the answer, in snake_case.")),
                ("header", string("A title of a word or two.")),
                ("question", string("The question, one sentence.")),
                ("options", array(option, "Two or three ways to answer. The user can always say something else.")),
            ],
            &["id", "header", "question", "options"],
        );
        (scope.role == Role::Main).then(|| {
            function(
                "request_user_input",
                "Asks the user one to three short questions and waits for the answers. Only where the mode allows it.",
                &[("questions", array(question, "The questions."))],
                &["questions"],
            )
        })
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        scope.role == Role::Main
    }

    fn notes_effects(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(async {
            let turn = &cx.action.turn;
            let args: Args = call.arguments()?;
            let allowed = turn.settings.mode == ModeKind::Plan
                || turn.profile.config.features.enabled(Feature::DefaultModeRequestUserInput);
            if !allowed {
                return Err("request_user_input is unavailable in Default mode".into());
            }
            if args.questions.iter().any(|question| question.options.is_empty()) {
                return Err("request_user_input requires non-empty options for every question".into());
            }
            let questions = args.questions.into_iter().map(|question| ToolRequestUserInputQuestion {
                id: question.id,
                header: question.header,
                question: question.question,
                is_other: true,
                is_secret: question.is_secret,
                options: Some(question.options),
            });
            let params = ToolRequestUserInputParams {
                thread_id: turn.thread_id.clone(),
                turn_id: turn.turn_id.clone(),
                item_id: call.id.clone(),
                questions: questions.collect(),
                is_blocking: true,
            };
            let answers = turn.request(params).await.ok_or(CANCELLED)?;
            serde_json::to_string(&answers).map(Into::into).map_err(|error| error.to_string())
        })
    }
}
