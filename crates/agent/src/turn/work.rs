//! What a turn is for.

use std::collections::BTreeMap;

use loomd_protocol::{Budget, JsonValue, ResponseItem, ReviewTarget, ServiceTier, TurnStartParams, TurnToolOutput};

use crate::inbox::UserMessageInput;
use crate::turn_origin::TurnOrigin;

/// What a turn is for.
pub(crate) enum Work {
    Answer(Box<AnswerWork>),
    Compact,
    Review { target: ReviewTarget, hint: String, prompt: String },
    ShellCommand { command: String },
}

/// A turn in which the model answers something.
#[derive(Default)]
pub(crate) struct AnswerWork {
    pub input: TurnInput,
    /// Context of the client, which the model is sent before the input.
    pub context: Vec<ResponseItem>,
    pub output_schema: Option<JsonValue>,
    pub labels: TurnLabels,
    /// What the turn may spend.
    pub budget: Option<Budget>,
    pub origin: TurnOrigin,
}

impl Work {
    /// What the turn may spend, as its request has it, and what started it.
    pub fn budget_and_origin(&self) -> (Option<Budget>, TurnOrigin) {
        match self {
            Self::Answer(answer) => (answer.budget.clone(), answer.origin.clone()),
            Self::Compact | Self::Review { .. } | Self::ShellCommand { .. } => (None, TurnOrigin::default()),
        }
    }
}

impl AnswerWork {
    /// The turn that a request starts; takes what it is for out of the params.
    pub fn of(params: &mut TurnStartParams) -> Self {
        let input = match params.tool_output.take() {
            Some(output) => TurnInput::ToolOutput(output),
            None => TurnInput::User(UserMessageInput {
                id: None,
                content: std::mem::take(&mut params.input),
                client_id: params.client_user_message_id.take(),
            }),
        };
        Self {
            input,
            context: Vec::new(),
            output_schema: params.output_schema.take(),
            budget: params.budget.take(),
            origin: TurnOrigin::default(),
            labels: TurnLabels {
                trigger: params.turn_trigger.take().filter(|trigger| !trigger.is_empty()),
                parent_turn_id: params.parent_turn_id.take(),
                root_turn_id: params.root_turn_id.take(),
                service_tier: params.service_tier_for_turn.take(),
                metadata: params.responsesapi_client_metadata.take().unwrap_or_default(),
            },
        }
    }

    /// A turn that answers input of the user.
    pub fn user(input: impl Into<UserMessageInput>) -> Self {
        Self { input: TurnInput::User(input.into()), ..Self::default() }
    }
}

/// What the model answers.
pub(crate) enum TurnInput {
    /// Input of the user; without any, the conversation as it is.
    User(UserMessageInput),
    /// The prompt of a goal, which is no item.
    Goal(String),
    /// A message of another agent, which is no item.
    Message(ResponseItem),
    /// The output of a tool that the client ran by itself.
    ToolOutput(TurnToolOutput),
}

impl Default for TurnInput {
    fn default() -> Self {
        Self::User(UserMessageInput::default())
    }
}

/// What the provider is told about one turn, and the tier that its calls have. Nothing of it is kept for later turns.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TurnLabels {
    pub trigger: Option<String>,
    pub parent_turn_id: Option<String>,
    /// The turn itself when there is none.
    pub root_turn_id: Option<String>,
    pub service_tier: Option<ServiceTier>,
    /// Further pairs for the provider.
    pub metadata: BTreeMap<String, String>,
}
