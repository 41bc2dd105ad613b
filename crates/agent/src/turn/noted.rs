//! What a turn is for, as it is noted for another process.

use uuid::Uuid;

use super::work::{AnswerWork, TurnInput, TurnLabels, Work};
use crate::inbox::UserMessageInput;
use crate::turn_notes::{NotedAnswer, NotedInput, NotedTurnInput, NotedWork};
use crate::turn_origin::TurnOrigin;

impl Work {
    /// The work as it is noted. Input of the user gets the id of its item.
    pub fn noted(&mut self) -> NotedWork {
        match self {
            Self::Answer(answer) => NotedWork::Answer(Box::new(answer.noted())),
            Self::Compact => NotedWork::Compact,
            Self::Review { .. } | Self::ShellCommand { .. } => NotedWork::Other,
        }
    }

    /// The work of a note; `None` for what is not taken up.
    pub fn of_note(note: NotedWork) -> Option<Self> {
        match note {
            NotedWork::Answer(answer) => Some(Self::Answer(Box::new(AnswerWork::of_note(*answer)))),
            NotedWork::Compact => Some(Self::Compact),
            NotedWork::Other => None,
        }
    }
}

impl AnswerWork {
    fn noted(&mut self) -> NotedAnswer {
        NotedAnswer {
            input: match &mut self.input {
                TurnInput::User(input) => NotedTurnInput::User(input.noted()),
                TurnInput::Goal(prompt) => NotedTurnInput::Goal(prompt.clone()),
                TurnInput::Message(item) => NotedTurnInput::Message(Box::new(item.clone())),
                TurnInput::ToolOutput(output) => NotedTurnInput::ToolOutput(Box::new(output.clone())),
            },
            context: self.context.clone(),
            output_schema: self.output_schema.clone(),
            budget: self.budget.clone(),
            trigger: self.labels.trigger.clone(),
            parent_turn_id: self.labels.parent_turn_id.clone(),
            root_turn_id: self.labels.root_turn_id.clone(),
            service_tier: self.labels.service_tier.clone(),
            metadata: self.labels.metadata.clone(),
        }
    }

    fn of_note(note: NotedAnswer) -> Self {
        Self {
            input: match note.input {
                NotedTurnInput::User(input) => TurnInput::User(input.into()),
                NotedTurnInput::Goal(prompt) => TurnInput::Goal(prompt),
                NotedTurnInput::Message(item) => TurnInput::Message(*item),
                NotedTurnInput::ToolOutput(output) => TurnInput::ToolOutput(*output),
            },
            context: note.context,
            output_schema: note.output_schema,
            budget: note.budget,
            origin: TurnOrigin::default(),
            labels: TurnLabels {
                trigger: note.trigger,
                parent_turn_id: note.parent_turn_id,
                root_turn_id: note.root_turn_id,
                service_tier: note.service_tier,
                metadata: note.metadata,
            },
        }
    }
}

impl UserMessageInput {
    /// The input as it is noted. It gets the id of its item.
    pub fn noted(&mut self) -> NotedInput {
        let id = self.id.get_or_insert_with(|| Uuid::new_v4().to_string()).clone();
        NotedInput { id, content: self.content.clone(), client_id: self.client_id.clone() }
    }
}

impl From<NotedInput> for UserMessageInput {
    fn from(note: NotedInput) -> Self {
        Self { id: Some(note.id), content: note.content, client_id: note.client_id }
    }
}
