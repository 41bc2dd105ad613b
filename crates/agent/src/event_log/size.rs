//! The approximate memory of an event. Parts that can be large are measured without serialising them; a constant stands
//! for the rest.

use loomd_protocol::{DynamicToolCallOutputContentItem, JsonValue, ServerNotification, ThreadItem, Turn, UserInput};

use crate::approval::ApprovalRequest;
use crate::event::EventKind;

/// An event without its texts: the shared notification itself, its ids and other short members, and its place in the
/// queue, half of which may be unused. `memory_tests.rs` compares the sum with the memory that is taken.
const FIXED: usize = size_of::<ServerNotification>() + 400;

pub(super) fn of(kind: &EventKind) -> usize {
    FIXED
        + match kind {
            EventKind::Notification(notification) => of_notification(notification),
            EventKind::ApprovalRequested(approval) => of_request(&approval.request),
            // Shares its approval with the request.
            EventKind::ApprovalResolved(_) => 0,
        }
}

/// Serialised to count its bytes: requests are rare, and have many fields.
fn of_request(request: &ApprovalRequest) -> usize {
    match request {
        ApprovalRequest::Command(params) => counted(params),
        ApprovalRequest::Patch(params) => counted(params),
        ApprovalRequest::Permissions(params) => counted(params),
        ApprovalRequest::UserInput(params) => counted(params),
        ApprovalRequest::ToolCall(params) => of_json(&params.arguments),
        ApprovalRequest::Elicitation(params) => counted(params),
    }
}

fn of_notification(notification: &ServerNotification) -> usize {
    use ServerNotification::*;
    if let Some(delta) = notification.text_delta() {
        return delta.text().len();
    }
    match notification {
        ItemStarted(started) => of_item(&started.item),
        ItemCompleted(completed) => of_item(&completed.item),
        TurnStarted(started) => of_turn(&started.turn),
        TurnCompleted(completed) => of_turn(&completed.turn),
        ThreadStarted(started) => {
            started.thread.preview.len() + started.thread.turns.iter().map(of_turn).sum::<usize>()
        }
        TurnDiffUpdated(updated) => updated.diff.len(),
        TurnPlanUpdated(updated) => {
            of_option(&updated.explanation) + updated.plan.iter().map(|step| 64 + step.step.len()).sum::<usize>()
        }
        Error(error) => error.error.message.len() + of_option(&error.error.additional_details),
        ConfigWarning(warning) => warning.summary.len() + of_option(&warning.details),
        HookCompleted(completed) => completed.run.entries.iter().map(|entry| 64 + entry.text.len()).sum(),
        CommandExecutionTerminalInteraction(typed) => typed.stdin.len(),
        AutoApprovalReviewStarted(review) => review.action.as_ref().map_or(0, of_json),
        AutoApprovalReviewCompleted(review) => {
            review.action.as_ref().map_or(0, of_json) + of_option(&review.review.rationale)
        }
        ThreadRealtimeOutputAudioDelta(delta) => delta.audio.data.len(),
        ThreadRealtimeItemAdded(added) => of_json(&added.item),
        ThreadRealtimeTranscriptUpdated(updated) => updated.text.len(),
        ThreadRealtimeError(error) => error.message.len(),
        // Only for clients that opted in to raw events. Serialised, because it has too many forms.
        RawResponseItemCompleted(raw) => counted(&raw.item),
        _ => 0,
    }
}

fn of_turn(turn: &Turn) -> usize {
    256 + turn.items.iter().map(of_item).sum::<usize>()
}

fn of_item(item: &ThreadItem) -> usize {
    use ThreadItem::*;
    let texts = |texts: &[String]| texts.iter().map(|text| 24 + text.len()).sum::<usize>();
    size_of::<ThreadItem>()
        + match item {
            UserMessage { content, .. } => content.iter().map(of_input).sum(),
            FunctionCallOutput { output, .. } => counted(output),
            SubAgentActivity { agent_path, agent_thread_id, .. } => agent_path.len() + agent_thread_id.len(),
            HookPrompt { fragments, .. } => fragments.iter().map(|fragment| 64 + fragment.text.len()).sum(),
            AgentMessage { text, .. } | Plan { text, .. } => text.len(),
            Reasoning { summary, content, .. } => texts(summary) + texts(content),
            // The actions of a command contain parts of its text.
            CommandExecution { command, command_actions, aggregated_output, .. } => {
                2 * command.len() + 128 * command_actions.len() + of_option(aggregated_output)
            }
            FileChange { changes, .. } => {
                changes.iter().map(|change| 128 + change.path.len() + change.diff.len()).sum()
            }
            McpToolCall { arguments, result, error, .. } => {
                let result = result.as_ref().map_or(0, |result| {
                    result.content.iter().chain(&result.structured_content).map(of_json).sum::<usize>()
                });
                of_json(arguments) + result + error.as_ref().map_or(0, |error| error.message.len())
            }
            DynamicToolCall { arguments, content_items, .. } => {
                let content = content_items.iter().flatten().map(|content| match content {
                    DynamicToolCallOutputContentItem::InputText { text } => 32 + text.len(),
                    DynamicToolCallOutputContentItem::InputImage { image_url } => 32 + image_url.len(),
                });
                of_json(arguments) + content.sum::<usize>()
            }
            CollabAgentToolCall { prompt, receiver_thread_ids, agents_states, .. } => {
                let states = agents_states.values().map(|state| 128 + of_option(&state.message));
                of_option(prompt) + texts(receiver_thread_ids) + states.sum::<usize>()
            }
            WebSearch { query, .. } => 2 * query.len(),
            ImageView { path, .. } => path.len(),
            ImageGeneration { revised_prompt, result, .. } => of_option(revised_prompt) + result.len(),
            EnteredReviewMode { review, .. } | ExitedReviewMode { review, .. } => review.len(),
            ContextCompaction { .. } => 0,
        }
}

fn of_input(input: &UserInput) -> usize {
    64 + match input {
        UserInput::Text { text, text_elements } => text.len() + 64 * text_elements.len(),
        UserInput::Image { url } | UserInput::Audio { url } => url.len(),
        _ => 128,
    }
}

fn of_json(value: &JsonValue) -> usize {
    32 + match value {
        JsonValue::String(text) => text.len(),
        JsonValue::Array(values) => values.iter().map(of_json).sum(),
        JsonValue::Object(members) => members.iter().map(|(name, value)| 32 + name.len() + of_json(value)).sum(),
        _ => 0,
    }
}

fn of_option(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

/// The length of a value as JSON.
fn counted(value: &impl serde::Serialize) -> usize {
    struct Counter(usize);

    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut counter = Counter(0);
    // Writing to a counter cannot fail; a value without JSON form is not sent either.
    _ = serde_json::to_writer(&mut counter, value);
    counter.0
}
