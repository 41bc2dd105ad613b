//! `event_msg`: the table of events that a rollout holds. An event is decoded by looking at its type
//! first and then reading straight into its own struct, so that no intermediate tree is built.

use serde::Serialize;

use super::events::*;
use super::extended::*;
use super::line::payload_type;

macro_rules! events {
    (
        always { $($name:ident = $tag:literal $(| $alias:literal)*,)* }
        extended { $($more:ident = $more_tag:literal,)* }
    ) => {
        /// Payload of `event_msg`.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(tag = "type")]
        #[allow(missing_docs)]
        pub enum Event {
            $(#[serde(rename = $tag)] $name($name),)*
            $(#[serde(rename = $more_tag)] $more($more),)*
        }

        impl Event {
            /// The event's type as it is written.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $tag,)*
                    $(Self::$more(_) => $more_tag,)*
                }
            }

            /// Whether the reference writes the event only with extended history.
            pub fn is_extended(&self) -> bool {
                match self {
                    $(Self::$name(_) => false,)*
                    $(Self::$more(_) => true,)*
                }
            }

            /// `None` for an unknown type or a payload that lacks a required field.
            pub fn decode(payload: &str) -> Option<Self> {
                match &*payload_type(payload)? {
                    $($tag $(| $alias)* => serde_json::from_str(payload).ok().map(Self::$name),)*
                    $($more_tag => serde_json::from_str(payload).ok().map(Self::$more),)*
                    _ => None,
                }
            }
        }

        $(impl From<$name> for Event {
            fn from(event: $name) -> Self {
                Self::$name(event)
            }
        })*
        $(impl From<$more> for Event {
            fn from(event: $more) -> Self {
                Self::$more(event)
            }
        })*
    };
}

events! {
    always {
        TaskStarted = "task_started" | "turn_started",
        TaskComplete = "task_complete" | "turn_complete",
        TurnAborted = "turn_aborted",
        UserMessage = "user_message",
        AgentMessage = "agent_message",
        AgentReasoning = "agent_reasoning",
        AgentReasoningRawContent = "agent_reasoning_raw_content",
        TokenCount = "token_count",
        ContextCompacted = "context_compacted",
        EnteredReviewMode = "entered_review_mode",
        ExitedReviewMode = "exited_review_mode",
        ThreadRolledBack = "thread_rolled_back",
        UndoCompleted = "undo_completed",
        ImageGenerationEnd = "image_generation_end",
        ItemCompleted = "item_completed",
        ThreadGoalUpdated = "thread_goal_updated",
        ThreadSettingsApplied = "thread_settings_applied",
    }
    extended {
        Error = "error",
        GuardianAssessment = "guardian_assessment",
        WebSearchEnd = "web_search_end",
        ExecCommandEnd = "exec_command_end",
        PatchApplyEnd = "patch_apply_end",
        McpToolCallEnd = "mcp_tool_call_end",
        ViewImageToolCall = "view_image_tool_call",
        CollabAgentSpawnEnd = "collab_agent_spawn_end",
        CollabAgentInteractionEnd = "collab_agent_interaction_end",
        CollabWaitingEnd = "collab_waiting_end",
        CollabCloseEnd = "collab_close_end",
        CollabResumeEnd = "collab_resume_end",
        DynamicToolCallRequest = "dynamic_tool_call_request",
        DynamicToolCallResponse = "dynamic_tool_call_response",
    }
}
