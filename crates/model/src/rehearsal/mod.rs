//! The rehearsal: a built-in model that needs neither key nor network. It follows plain commands in the last user
//! message, or replays a scenario. Deterministic: the same conversation gets the same response, ids included.
//!
//! It keeps no position in a prompt: the number of calls since the last user message gives it.

mod builder;
mod clauses;
mod failures;
mod scenario;
mod schema;
mod source;
mod step;
mod texts;
mod tools;
mod words;

use std::sync::Arc;

use loomd_protocol::{ContentItem, ResponseItem};

use self::builder::ResponseBuilder;
pub use self::scenario::Scenario;
use self::source::ScriptedEvents;
use self::step::Step;
use crate::input::CONTEXT_PREFIXES;
use crate::{Events, InputItem, ModelError, ModelEvent, Request};

/// The rehearsal of one thread.
pub(crate) struct Rehearsal {
    scenario: Option<Arc<Scenario>>,
    /// The number of responses so far, which makes ids unique.
    answers: u64,
    /// The length of the last conversation, and how often it has been answered before.
    attempts: (usize, u32),
}

impl Rehearsal {
    pub fn new(scenario: Option<Arc<Scenario>>) -> Self {
        Self { scenario, answers: 0, attempts: (0, 0) }
    }

    pub fn stream(&mut self, request: &Request) -> Result<Events, ModelError> {
        self.answers += 1;
        self.attempts = match self.attempts {
            (length, attempts) if length == request.input.len() => (length, attempts + 1),
            _ => (request.input.len(), 0),
        };
        let state = ConversationState::new(&request.input);
        let (steps, last) = self.steps(request, &state)?;
        let prefix = format!("{}_{}", self.answers, request.input.len());
        let builder = ResponseBuilder::new(request, &state.outputs, self.attempts.1, prefix);
        Ok(Events::new(ScriptedEvents::new(builder.build(&steps, last))))
    }

    /// Returns the items of the scenario's next response in place of a compacted conversation.
    pub fn compact(&mut self, request: &Request) -> Result<Vec<ResponseItem>, ModelError> {
        let missing = || ModelError::Unsupported("the rehearsal does not support compaction without a scenario".into());
        let scenario = self.scenario.as_ref().ok_or_else(missing)?;
        let answer = scenario.next(&request.headers.session_id)?.ok_or_else(missing)?;
        let item = |step: Step| match step {
            Step::Event(event) => match *event {
                Ok(ModelEvent::ItemDone { item, .. }) => Some(item),
                _ => None,
            },
            Step::Item(item) => Some(*item),
            _ => None,
        };
        Ok(answer.into_iter().filter_map(item).collect())
    }

    /// Returns the steps of this response, and whether the prompt ends with them.
    fn steps(&self, request: &Request, state: &ConversationState) -> Result<(Vec<Step>, bool), ModelError> {
        if let Some(scenario) = &self.scenario
            && let Some(answer) = scenario.next(&request.headers.session_id)?
        {
            return Ok((answer, false));
        }
        // Requests without tools ask for a summary.
        if request.tools.specs().is_empty() {
            let summary = format!("The conversation had {} items. {}", request.input.len(), texts::SUMMARY);
            return Ok((vec![Step::say(summary)], false));
        }
        let user_text = state.user_text.as_deref().unwrap_or_default();
        if user_text.ends_with(texts::SUMMARY) {
            return Ok((Vec::new(), true));
        }
        let steps = words::parse(user_text);
        if steps.is_empty() {
            let review = request.headers.subagent.as_deref() == Some("review");
            let answer = if review { texts::REVIEW } else { texts::INTRODUCTION };
            let structured = request.output_schema.is_some();
            return Ok((if structured { Vec::new() } else { vec![Step::say(answer)] }, structured));
        }
        Ok(next_steps(&steps, state.calls))
    }
}

/// Returns the steps behind the calls made so far, up to the next calls, and whether the prompt ends with them.
fn next_steps(steps: &[Step], made: usize) -> (Vec<Step>, bool) {
    let mut calls = 0;
    let start = if made == 0 {
        0
    } else {
        let place = steps.iter().position(|step| {
            calls += usize::from(matches!(step, Step::Call(_)));
            calls == made
        });
        place.map_or(steps.len(), |place| place + 1)
    };
    let rest = &steps[start..];
    let end = rest.iter().enumerate().position(|(index, step)| match step {
        Step::Break => true,
        Step::Call(_) => !matches!(rest.get(index + 1), Some(Step::Also)),
        _ => false,
    });
    match end {
        Some(end) => (rest[..=end].to_vec(), false),
        None => (rest.to_vec(), true),
    }
}

/// What the rehearsal needs of a conversation.
struct ConversationState {
    /// The last input of the user.
    user_text: Option<String>,
    /// The number of calls since then.
    calls: usize,
    /// All tool outputs, oldest first.
    outputs: Vec<String>,
}

impl ConversationState {
    fn new(input: &[InputItem]) -> Self {
        let mut state = Self { user_text: None, calls: 0, outputs: Vec::new() };
        for item in input.iter().filter_map(InputItem::decode) {
            match item {
                ResponseItem::Message { role, content, .. } if role == "user" => {
                    let text = text_of(&content);
                    if !CONTEXT_PREFIXES.iter().any(|start| text.starts_with(start)) {
                        (state.user_text, state.calls) = (Some(text), 0);
                    }
                }
                ResponseItem::FunctionCall { .. }
                | ResponseItem::CustomToolCall { .. }
                | ResponseItem::LocalShellCall { .. } => state.calls += 1,
                ResponseItem::FunctionCallOutput { output, .. } | ResponseItem::CustomToolCallOutput { output, .. } => {
                    if let loomd_protocol::FunctionCallOutputBody::Text(text) = output {
                        state.outputs.push(text);
                    }
                }
                _ => {}
            }
        }
        state
    }
}

fn text_of(content: &[ContentItem]) -> String {
    let texts = content.iter().filter_map(|part| match part {
        ContentItem::InputText { text } | ContentItem::OutputText { text } => Some(text.as_str()),
        ContentItem::InputImage { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
