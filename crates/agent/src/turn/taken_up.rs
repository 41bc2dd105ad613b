//! A turn that another process left unfinished: it goes on from its last record. A call whose effects had begun is not
//! carried out again; the model is told that its outcome is unknown. Any other call is carried out, with its approval.

use loomd_protocol::{FunctionCallOutputBody, ThreadItem};
use loomd_store::rollout::Event;

use super::recovered::{CallState, RecoveredCall, RecoveredTurn};
use super::task::{Failure, TurnTask};
use super::work::{TurnInput, Work};
use crate::given_up::given_up;
use crate::inbox::{Input, UserMessageInput};
use crate::message::message;
use crate::tool_call::Call;
use crate::turns::end_event;

/// The output of a call that was cut off.
const OUTCOME_UNKNOWN: &str = "interrupted, outcome unknown: the server was restarted while this ran. It was not run \
                               again. Check what it has done before you repeat it.";

impl TurnTask {
    /// Completes what was left open. Whether the model has to be called.
    pub(super) async fn take_up(&mut self, turn: RecoveredTurn) -> Result<bool, Failure> {
        let mut open = !turn.finished || !turn.calls.is_empty();
        self.progress.last_message = turn.last_message;
        if turn.calls.iter().any(|call| matches!(call.state, CallState::NotStarted)) {
            self.update_tools().await?;
        }
        for RecoveredCall { item, state } in turn.calls {
            let Some(call) = Call::of(&item) else { continue };
            let text = match state {
                CallState::NotStarted => {
                    self.progress.calls.launch(&self.toolbox, call);
                    continue;
                }
                CallState::Started(item) => {
                    if let Some(item) = item {
                        self.complete_unknown(*item).await;
                    }
                    OUTCOME_UNKNOWN.to_owned()
                }
                CallState::Ended(text) => text,
            };
            self.append(&call.output(FunctionCallOutputBody::Text(text))).await;
        }
        for item in turn.sessions {
            if let ThreadItem::CommandExecution { process_id: Some(id), .. } = &item {
                let text = format!("The process of session {id} ended when the server was restarted.");
                self.append(&message("developer", text)).await;
            }
            self.complete_unknown(item).await;
        }
        self.collect_outputs().await;
        for input in turn.inputs {
            open |= self.take_queued(Input::User(input)).await?;
        }
        Ok(open)
    }

    /// Records the input of a turn that does not go on. It was acknowledged.
    pub(super) async fn record_unread(&mut self, work: Work, given: Vec<UserMessageInput>) {
        if let Work::Answer(answer) = work
            && let TurnInput::User(input) = answer.input
            && !input.content.is_empty()
        {
            self.take_input(input).await;
        }
        for input in given {
            self.take_input(input).await;
        }
    }

    /// Records and publishes the end of an item whose outcome is unknown.
    async fn complete_unknown(&self, item: ThreadItem) {
        self.cx.started(item.clone()).await;
        let mut item = given_up(item);
        if let ThreadItem::CommandExecution { aggregated_output, duration_ms, .. } = &mut item {
            *aggregated_output = Some(OUTCOME_UNKNOWN.into());
            duration_ms.get_or_insert(0);
        }
        let event: Option<Event> = end_event(&item, &self.cx.turn_id);
        self.cx.completed(item, event).await;
    }
}
