//! Taking up the turn that another process left unfinished.

use std::collections::HashMap;

use jiff::Timestamp;
use loomd_protocol::{OnDisconnect, ResponseItem, ThreadItem};

use super::launching::new_turn_id;
use super::noting::TakenUp;
use super::running_turn::QueuedTurn;
use super::state::Thread;
use crate::message::message;
use crate::recorded_turn::RecordedTurn;
use crate::refusal::Refusal;
use crate::tool_call::Call;
use crate::turn::{AnswerWork, CallState, RecoveredCall, RecoveredTurn, TurnInput, Work};
use crate::turn_notes::{NotedInput, NotedTurnInput, NotedWork, TurnNote, UnfinishedTurn};

/// How often a turn is taken up again that records nothing in between. A turn that ends its process must not do so for
/// ever.
const MAX_ATTEMPTS: u32 = 5;

impl Thread {
    /// Goes on with an unfinished turn and the turns that wait for it. Called once, before any other request. Fails when
    /// several processes share the thread and the turn has to be left to another try: its notes stay.
    pub(super) async fn recover(&mut self, unfinished: UnfinishedTurn) -> Result<(), Refusal> {
        let turn_id = unfinished.started.turn_id.clone();
        if let Err(refusal) = self.try_recover(unfinished).await {
            tracing::warn!(thread = %self.id, turn = %turn_id, %refusal, "an unfinished turn cannot be taken up");
            // The notes stay, for the next start, or for another process.
            self.queued.clear();
            return match self.let_go.is_shared() {
                true => Err(Refusal::failed(refusal.to_string())),
                false => Ok(()),
            };
        }
        if self.running.is_none() {
            self.begin_next().await;
        }
        if self.running.is_none() {
            self.begin_idle_work().await;
        }
        self.remove_notes().await;
        Ok(())
    }

    async fn try_recover(&mut self, unfinished: UnfinishedTurn) -> Result<(), Refusal> {
        let UnfinishedTurn { started, inputs, calls, queued } = unfinished;
        let seconds = started.started_at_ms.div_euclid(1000);
        let recorded = RecordedTurn::read(self.reader()?, &started.turn_id, seconds).await?;
        let keys = inputs
            .iter()
            .chain(input_of(&started.work))
            .chain(queued.iter().filter_map(|(_, work)| input_of(work)))
            .filter_map(|input| input.client_id.as_ref());
        self.taken_up = keys.map(|key| serde_json::Value::from(key.as_str()).to_string()).collect();
        self.taken_up.insert(started.turn_id.clone());
        for (turn_id, work) in queued {
            if let Some(work) = Work::of_note(work) {
                self.taken_up.insert(turn_id.clone());
                self.queued.push_back(QueuedTurn { turn_id, work, replaces: false });
            }
        }
        if recorded.ended {
            // Input that the turn was given and did not read becomes the next turn.
            let unread = inputs.into_iter().filter(|input| !recorded.inputs.contains(&input.id)).rev();
            for input in unread {
                let answer = AnswerWork { input: TurnInput::User(input.into()), ..AnswerWork::default() };
                let work = Work::Answer(Box::new(answer));
                self.queued.push_front(QueuedTurn { turn_id: new_turn_id(), work, replaces: false });
            }
            return Ok(());
        }
        let count = match started.attempts > 0 && started.records == recorded.records {
            true => started.attempts + 1,
            false => 1,
        };
        let given = inputs.iter().cloned().map(TurnNote::Input);
        let begun = calls.iter().map(|(call_id, item)| TurnNote::CallStarted {
            call_id: call_id.clone(),
            item: item.clone().map(Box::new),
        });
        let taken_up = TakenUp { count, records: recorded.records, notes: given.chain(begun).collect() };
        let started_at = Timestamp::from_millisecond(started.started_at_ms).unwrap_or_else(|_| Timestamp::now());
        let interrupted = count > MAX_ATTEMPTS
            || started.thread.on_disconnect == OnDisconnect::Interrupt
            || started.work == NotedWork::Other;
        let mut items: HashMap<_, _> = calls.into_iter().collect();
        let mut recovered = RecoveredTurn {
            started_at,
            recorded: recorded.records > 0,
            finished: recorded.answered,
            interrupted,
            calls: Vec::new(),
            sessions: Vec::new(),
            inputs: inputs.into_iter().filter(|input| !recorded.inputs.contains(&input.id)).map(Into::into).collect(),
            last_message: recorded.last_message.clone(),
        };
        for item in &recorded.calls {
            let Some(call) = Call::of(item) else { continue };
            let state = match (recorded.ends.get(&call.id), items.remove(&call.id)) {
                (Some(text), _) => CallState::Ended(text.clone()),
                (None, Some(item)) => CallState::Started(item.map(Box::new)),
                (None, None) => CallState::NotStarted,
            };
            recovered.calls.push(RecoveredCall { item: item.clone(), state });
        }
        let is_shown_again = |call: &&RecoveredCall| !matches!(call.state, CallState::Ended(_));
        let shown_again = recovered.calls.iter().filter(is_shown_again);
        self.recovered_calls = shown_again.filter_map(|call| Some(Call::of(&call.item)?.id)).collect();
        // Commands in the background ended with their process.
        recovered.sessions = items.into_values().flatten().filter(|item| is_session(item, &recorded)).collect();
        let queued_message = started.queued_message;
        let turn_id = started.turn_id;
        let mut work = match Work::of_note(started.work) {
            Some(Work::Answer(answer)) => Work::Answer(Box::new(rest_of(*answer, &recorded))),
            // Its summary is in the rollout; only the end of the turn is missing.
            Some(Work::Compact) if recorded.compacted => {
                recovered.finished = true;
                Work::Answer(Box::default())
            }
            Some(work) => work,
            None => Work::Answer(Box::default()),
        };
        // What was asked is asked under the same ids, and what was decided counts.
        self.events.recall_approvals(&turn_id).await?;
        let prepared = self.prepare_turn().await?;
        self.note_turn(&turn_id, started_at, &mut work, queued_message, taken_up).await?;
        tracing::info!(thread = %self.id, turn = %turn_id, interrupted, "an unfinished turn is taken up");
        self.launch_recovered(prepared, turn_id, work, Some(Box::new(recovered))).await;
        if let Some(running) = &mut self.running {
            running.queued_message = queued_message;
        }
        Ok(())
    }
}

/// Whether the call of a command has returned while the command went on.
fn is_session(item: &ThreadItem, recorded: &RecordedTurn) -> bool {
    matches!(item, ThreadItem::CommandExecution { id, process_id: Some(_), .. } if !recorded.ends.contains_key(id))
}

fn input_of(work: &NotedWork) -> Option<&NotedInput> {
    match work {
        NotedWork::Answer(answer) => match &answer.input {
            NotedTurnInput::User(input) => Some(input),
            _ => None,
        },
        _ => None,
    }
}

/// The work without what is in the rollout.
fn rest_of(mut work: AnswerWork, recorded: &RecordedTurn) -> AnswerWork {
    work.context.retain(|item| !recorded.added.contains(item));
    let added = |item: &ResponseItem| recorded.added.contains(item);
    let is_recorded = match &work.input {
        TurnInput::User(input) => input.id.as_ref().is_some_and(|id| recorded.inputs.contains(id)),
        TurnInput::Goal(prompt) => added(&message("user", prompt.clone())),
        TurnInput::Message(item) => added(item),
        TurnInput::ToolOutput(output) => recorded.added.iter().any(
            |item| matches!(item, ResponseItem::FunctionCallOutput { name, .. } if name.as_ref() == Some(&output.name)),
        ),
    };
    if is_recorded {
        work.input = TurnInput::default();
    }
    work
}
