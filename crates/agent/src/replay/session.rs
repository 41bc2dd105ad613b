//! The source of recorded outcomes during a replay, and the comparison with the recording.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use jiff::Zoned;
use loomd_model::InputItem;
use loomd_protocol::FunctionCallOutputBody;
use loomd_store::rollout::Event;
use parking_lot::{Mutex, MutexGuard};

use super::agree;
use super::compare::{CompareOptions, Difference};
use super::lines::RolloutLines;
use super::script::{Script, Turn};
use super::steps::{BetweenCalls, CallOutcome, CallPurpose};
use crate::conversation::ConversationBuilder;
use crate::tool_call::{Call, Output};
use crate::turn_cx::TurnCx;
use crate::turns::tool_item;

/// The recording of a thread while it is replayed. It takes the place of tools and clients, and is compared with the
/// input of model calls.
pub struct ReplaySession {
    state: Mutex<ReplayState>,
    options: CompareOptions,
}

struct ReplayState {
    lines: Arc<RolloutLines>,
    /// The recorded conversation up to the line `read`.
    expected: ConversationBuilder,
    read: usize,
    turn: CurrentTurn,
    difference: Option<Difference>,
}

/// The turn that is being replayed.
#[derive(Default)]
struct CurrentTurn {
    number: usize,
    now: Option<Zoned>,
    realtime_active: bool,
    /// The model calls, with the line at which each answer begins.
    model_calls: VecDeque<(CallPurpose, usize)>,
    gaps: VecDeque<BetweenCalls>,
    outcomes: HashMap<String, CallOutcome>,
}

impl ReplaySession {
    pub fn new(script: &Script, options: CompareOptions) -> Arc<Self> {
        let state = ReplayState {
            lines: Arc::clone(&script.lines),
            expected: ConversationBuilder::default(),
            read: 0,
            turn: CurrentTurn::default(),
            difference: None,
        };
        Arc::new(Self { state: Mutex::new(state), options })
    }

    /// Sets the turn that is replayed next.
    pub fn begin(&self, turn: Turn) {
        let Turn { number, now, realtime_active, model_calls, gaps, outcomes, .. } = turn;
        let (model_calls, gaps) = (model_calls.into(), gaps.into());
        self.lock().turn = CurrentTurn { number, now, realtime_active, model_calls, gaps, outcomes };
    }

    /// Ends the turn. Returns the first difference so far.
    pub fn end(&self) -> Option<Difference> {
        let mut state = self.lock();
        let left = state.turn.model_calls.len();
        if left > 0 {
            state.differs("calls of the model", format!("{left} more"), "no more".into());
        }
        state.difference.clone()
    }

    pub(crate) fn now(&self) -> Option<Zoned> {
        self.lock().turn.now.clone()
    }

    /// Whether a realtime session was open.
    pub(crate) fn realtime_active(&self) -> bool {
        self.lock().turn.realtime_active
    }

    /// Compares the input of a model call with the recording.
    pub(crate) fn check_input(&self, asked: CallPurpose, input: &[InputItem], images: bool) {
        let mut state = self.lock();
        let Some((expected, start)) = state.turn.model_calls.pop_front() else {
            return state.differs("calls of the model", "no more".into(), "one more".into());
        };
        if expected != asked {
            return state.differs("what the model is asked for", format!("{expected:?}"), format!("{asked:?}"));
        }
        let (lines, from) = (Arc::clone(&state.lines), state.read);
        for at in from..start {
            if let Some(line) = lines.line(at) {
                state.expected.line(&line);
            }
        }
        state.read = start.max(from);
        let before = state.expected.input(images);
        if let Some((place, recorded, replayed)) = self.options.inputs(&before, input) {
            state.differs(&format!("what the model is told, {place}"), recorded, replayed);
        }
    }

    /// Takes the input before the next model call.
    pub(crate) fn gap(&self) -> BetweenCalls {
        self.lock().turn.gaps.pop_front().unwrap_or_default()
    }

    /// Publishes the recorded items of a call. Returns its recorded output.
    pub(crate) async fn call(&self, cx: &TurnCx, call: &Call) -> Output {
        let outcome = {
            let mut state = self.lock();
            let place = format!("the call {} of {}", call.id, call.name);
            let outcome = state.turn.outcomes.remove(&call.id);
            match &outcome {
                None => state.differs(&place, "not made".into(), "made".into()),
                Some(outcome) => {
                    if let Some((told, shown)) = agree::disagreement(outcome) {
                        state.differs(&format!("{place}: what the model was told, and what is shown"), told, shown);
                    }
                }
            }
            outcome.unwrap_or_default()
        };
        for event in outcome.events {
            self.show(cx, event).await;
        }
        let body = outcome.output.unwrap_or_else(|| FunctionCallOutputBody::Text("aborted".into()));
        Output { body, notes: outcome.notes }
    }

    /// Publishes the item of a recorded event as started and completed in this turn.
    pub(crate) async fn show(&self, cx: &TurnCx, mut event: Event) {
        match &mut event {
            Event::ExecCommandEnd(end) => end.turn_id.clone_from(&cx.turn_id),
            Event::PatchApplyEnd(end) => end.turn_id.clone_from(&cx.turn_id),
            Event::DynamicToolCallRequest(request) => request.turn_id.clone_from(&cx.turn_id),
            Event::DynamicToolCallResponse(response) => response.turn_id.clone_from(&cx.turn_id),
            _ => {}
        }
        if let Some((_, item)) = tool_item(event.clone()) {
            cx.started(item.clone()).await;
            cx.completed(item, Some(event)).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReplayState> {
        self.state.lock()
    }
}

impl ReplayState {
    /// Records a difference, unless there is an earlier one, which may have caused it.
    fn differs(&mut self, place: &str, recorded: String, replayed: String) {
        let turn = self.turn.number;
        self.difference.get_or_insert_with(|| Difference::new(turn, place, &recorded, &replayed));
    }
}
