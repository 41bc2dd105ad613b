//! Cuts one turn of a rollout into the model's answers and the input between them. An answer ends before the outputs of
//! its calls, before user input, and at the end of the turn.

use std::collections::HashMap;
use std::ops::Range;

use loomd_protocol::{CodexErrorInfo, ResponseItem, ThreadItem, TurnError, UserInput};
use loomd_store::rollout::{AbortReason, Compacted, Event, Record, TokenUsage, TurnContext};

use super::answers::{Answer, AnswerPart};
use super::lines::{CallEnds, RolloutLines, call_id};
use super::steps::{BetweenCalls, CallOutcome, CallPurpose, Stop};
use crate::inbox::Input;
use crate::message::text_of;
use crate::prompts;
use crate::tool_call::Call;
use crate::turns::user_message;

/// The kind of a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    Answer(Vec<UserInput>),
    Compact,
}

/// A turn that can be replayed.
pub(super) struct CutTurn {
    pub work: Work,
    pub context: Option<TurnContext>,
    pub model_calls: Vec<(CallPurpose, usize)>,
    pub gaps: Vec<BetweenCalls>,
    pub outcomes: HashMap<String, CallOutcome>,
    pub scenario: String,
}

/// Cuts a turn. The error is the reason why it cannot be replayed.
pub(super) fn cut(lines: &RolloutLines, span: Range<usize>, ends: &CallEnds) -> Result<CutTurn, &'static str> {
    let records: Vec<(usize, Record)> = span.filter_map(|at| Some((at, lines.record(at)?))).collect();
    let mut cutter = Cutter::new(ends);
    for (index, (at, record)) in records.iter().enumerate() {
        let next = records.get(index + 1).map(|(_, record)| record);
        cutter.take(*at, record, next);
    }
    cutter.finish()
}

struct Cutter<'a> {
    ends: &'a CallEnds,
    input: Option<Vec<UserInput>>,
    context: Option<TurnContext>,
    model_calls: Vec<(CallPurpose, usize)>,
    gaps: Vec<BetweenCalls>,
    outcomes: HashMap<String, CallOutcome>,
    scenario: String,
    /// The answer that is being read: its first line, its parts, and the input before it.
    answer: Option<(usize, Answer, BetweenCalls)>,
    /// The input since the last answer.
    gap: BetweenCalls,
    /// The call whose output came last.
    last_output: Option<String>,
    /// Another model call must follow before the turn can end. Its input is everything before this line.
    waits: Option<usize>,
    stop: Option<Stop>,
    compacted: bool,
    not_replayable: Option<&'static str>,
}

impl<'a> Cutter<'a> {
    fn new(ends: &'a CallEnds) -> Self {
        Self {
            ends,
            input: None,
            context: None,
            model_calls: Vec::new(),
            gaps: Vec::new(),
            outcomes: HashMap::new(),
            scenario: String::new(),
            answer: None,
            gap: BetweenCalls::default(),
            last_output: None,
            waits: None,
            stop: None,
            compacted: false,
            not_replayable: None,
        }
    }

    fn take(&mut self, at: usize, record: &Record, next: Option<&Record>) {
        match record {
            Record::ResponseItem(item) => self.item(at, item, next),
            Record::EventMsg(event) => self.event(at, event),
            Record::Compacted(compacted) => self.summary(at, compacted),
            Record::TurnContext(context) => _ = self.context.get_or_insert_with(|| (**context).clone()),
            Record::SessionMeta(_) | Record::Approval(_) => {}
        }
    }

    fn item(&mut self, at: usize, item: &ResponseItem, next: Option<&Record>) {
        match item {
            ResponseItem::Message { role, .. } if role == "assistant" => self.piece(at, AnswerPart::Item(item.clone())),
            ResponseItem::Message { role, .. } => self.message(at, item, role == "developer", next),
            ResponseItem::FunctionCallOutput { call_id, output, .. }
            | ResponseItem::CustomToolCallOutput { call_id, output, .. } => {
                self.end_answer();
                let outcome = self.outcomes.entry(call_id.clone()).or_default();
                outcome.output = Some(output.clone());
                self.last_output = Some(call_id.clone());
                self.waits = Some(at + 1);
            }
            ResponseItem::FunctionCall { .. }
            | ResponseItem::CustomToolCall { .. }
            | ResponseItem::LocalShellCall { .. } => {
                if let Some(Call { id, .. }) = Call::of(item) {
                    let events = self.ends.events.get(&id).cloned().unwrap_or_default();
                    self.outcomes.entry(id).or_default().events = events;
                }
                self.piece(at, AnswerPart::Item(item.clone()));
            }
            ResponseItem::Reasoning { .. }
            | ResponseItem::ToolSearchCall { .. }
            | ResponseItem::WebSearchCall { .. }
            | ResponseItem::ImageGenerationCall { .. }
            | ResponseItem::Compaction { .. } => self.piece(at, AnswerPart::Item(item.clone())),
            _ => {}
        }
    }

    /// A message with the role of the user or developer. Those that the replay writes again are skipped.
    fn message(&mut self, at: usize, item: &ResponseItem, developer: bool, next: Option<&Record>) {
        if matches!(next, Some(Record::EventMsg(Event::UserMessage(_)))) {
            return;
        }
        let text = text_of(item);
        let after_image = self.answer.as_ref().is_some_and(|(_, answer, _)| answer.ends_with_image());
        if text == prompts::TURN_ABORTED || self.input.is_none() || (developer && after_image) {
            return;
        }
        if let Some(model) = prompts::rerouted_to(&text) {
            return self.piece(at, AnswerPart::Model(model.to_owned()));
        }
        match self.last_output.as_ref().filter(|_| self.answer.is_none()) {
            Some(call) => self.outcomes.entry(call.clone()).or_default().notes.push(item.clone()),
            None => {
                self.end_answer();
                self.gap.inputs.push(Input::Injected(Box::new(item.clone())));
            }
        }
        self.waits = Some(at + 1);
    }

    fn event(&mut self, at: usize, event: &Event) {
        match event {
            Event::UserMessage(message) => {
                self.end_answer();
                let ThreadItem::UserMessage { content, .. } = user_message(String::new(), message.clone()) else {
                    return;
                };
                match self.input {
                    None => self.input = Some(content),
                    Some(_) => self.gap.inputs.push(Input::User(content.into())),
                }
                self.last_output = None;
                self.waits = Some(at + 1);
            }
            Event::AgentMessage(message) => self.piece(at, AnswerPart::Message(message.clone())),
            Event::AgentReasoning(reasoning) => {
                self.piece(at, AnswerPart::Summary(reasoning.item_id.clone(), reasoning.text.clone()));
            }
            Event::AgentReasoningRawContent(reasoning) => {
                self.piece(at, AnswerPart::Reasoning(reasoning.item_id.clone(), reasoning.text.clone()));
            }
            Event::WebSearchEnd(end) => self.piece(at, AnswerPart::HostedId(end.call_id.clone())),
            Event::ImageGenerationEnd(end) => self.piece(at, AnswerPart::HostedId(end.call_id.clone())),
            Event::TokenCount(count) => {
                let usage = count.info.map(|info| info.last_token_usage);
                if let Some(usage) = usage.filter(|usage| usage.input_tokens > 0 || usage.output_tokens > 0) {
                    self.piece(at, AnswerPart::Usage(usage));
                }
            }
            Event::EnteredReviewMode(_) => self.not_replayable = Some("a review, whose answers are not recorded"),
            Event::Error(error) => {
                self.stop = Some(Stop::Fail(TurnError {
                    message: error.message.clone(),
                    codex_error_info: error.codex_error_info.clone().map(Into::into),
                    additional_details: None,
                }));
            }
            Event::TurnAborted(aborted) => {
                self.stop = Some(Stop::Interrupt { replaced: aborted.reason == AbortReason::Replaced });
            }
            event => {
                if call_id(event).is_some_and(|id| !self.ends.made.contains(id)) {
                    self.gap.strays.push(event.clone());
                }
            }
        }
    }

    /// Adds a part to the current answer, or begins one.
    fn piece(&mut self, at: usize, piece: AnswerPart) {
        let (_, answer, _) = self.answer.get_or_insert_with(|| (at, Answer::default(), std::mem::take(&mut self.gap)));
        answer.push(at, piece);
        self.last_output = None;
        self.waits = None;
    }

    fn end_answer(&mut self) {
        if let Some((start, answer, before)) = self.answer.take() {
            self.model_calls.push((CallPurpose::Answer, start));
            self.gaps.push(before);
            self.scenario += &answer.scenario(None);
        }
    }

    /// Adds a compaction. Its token usage is the record before it.
    fn summary(&mut self, at: usize, compacted: &Compacted) {
        self.compacted = true;
        let mut took = None;
        let mut start = at;
        if let Some((_, answer, _)) = &mut self.answer
            && let Some((counted, usage)) = answer.pop_usage()
        {
            (start, took) = (counted, Some(usage));
        }
        match self.answer.take_if(|(_, answer, _)| answer.is_empty()) {
            // The usage was all there was of this answer, so it was the compaction's.
            Some((_, _, before)) => {
                let after = std::mem::replace(&mut self.gap, before);
                self.gap.inputs.extend(after.inputs);
                self.gap.strays.extend(after.strays);
            }
            None => self.end_answer(),
        }
        self.model_calls.push((CallPurpose::Summary, start));
        self.scenario += &summary(compacted, took);
        self.waits = self.input.is_some().then_some(at + 1);
    }

    fn finish(mut self) -> Result<CutTurn, &'static str> {
        if let Some(why) = self.not_replayable {
            return Err(why);
        }
        let work = match self.input.take() {
            Some(input) => Work::Answer(input),
            None if self.compacted => Work::Compact,
            None => return Err("it has no user input"),
        };
        if work == Work::Compact && self.stop.is_some() {
            return Err("a compaction that did not complete");
        }
        // A full context window is replayed as the provider's error, because it changes the token usage.
        let full = matches!(&self.stop, Some(Stop::Fail(error))
            if error.codex_error_info == Some(CodexErrorInfo::ContextWindowExceeded));
        if let Some(start) = self.waits.filter(|_| work != Work::Compact) {
            self.answer = Some((start, Answer::default(), std::mem::take(&mut self.gap)));
        }
        if let Some((start, answer, before)) = self.answer.take() {
            self.model_calls.push((CallPurpose::Answer, start));
            self.gaps.push(before);
            self.scenario += &answer.scenario(full.then_some("context_window_exceeded"));
        }
        self.gap.stop = self.stop.take();
        self.gaps.push(self.gap);
        let Self { context, model_calls, gaps, outcomes, scenario, .. } = self;
        Ok(CutTurn { work, context, model_calls, gaps, outcomes, scenario })
    }
}

/// The scenario of a compaction's answer: the text of the summary, or the provider's items.
fn summary(compacted: &Compacted, took: Option<TokenUsage>) -> String {
    let history = compacted.replacement_history.as_deref().unwrap_or_default();
    let mut answer = Answer::default();
    if history.iter().any(|item| matches!(item, ResponseItem::Compaction { .. })) {
        history.iter().for_each(|item| answer.push(0, AnswerPart::Item(item.clone())));
    } else {
        answer.push(0, AnswerPart::Item(super::answers::said(&compacted.message)));
    }
    if let Some(usage) = took {
        answer.push(0, AnswerPart::Usage(usage));
    }
    answer.scenario(None)
}
