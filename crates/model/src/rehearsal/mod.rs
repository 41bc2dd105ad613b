//! The rehearsal: a model that needs no key and no network. It does what plain words in the last message of
//! the user say, or plays a scenario, and is a stand-in that says so. The same conversation always leads to
//! the same answer, ids included.
//!
//! It keeps no notes about where it is: the calls that have been made since the user spoke say that.

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

/// One thread's rehearsal.
pub(crate) struct Rehearsal {
    scenario: Option<Arc<Scenario>>,
    /// How many answers there have been, so that no two have the same ids.
    answers: u64,
    /// The length of the last conversation, and how often it has been answered.
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

    /// The items that stand for a long conversation, where a scenario has them.
    pub fn compact(&mut self, request: &Request) -> Result<Vec<ResponseItem>, ModelError> {
        let missing = || ModelError::Unsupported("the rehearsal cannot shorten a conversation".into());
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

    /// The steps of this answer, and whether they are the last.
    fn steps(&self, request: &Request, state: &ConversationState) -> Result<(Vec<Step>, bool), ModelError> {
        if let Some(scenario) = &self.scenario
            && let Some(answer) = scenario.next(&request.headers.session_id)?
        {
            return Ok((answer, false));
        }
        // Nothing to work with: the conversation is to be summarised.
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

/// The steps between the calls that have been made and the next ones, and whether nothing follows.
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

/// What matters of a conversation.
struct ConversationState {
    /// What the user user_text last.
    user_text: Option<String>,
    /// How many calls have been made since.
    calls: usize,
    /// What tools have answered, all of them.
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
