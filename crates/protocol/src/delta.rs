//! Notifications with text deltas. For a connection that lags, adjacent deltas of the same text are merged; these impls
//! define which ones belong together.

use crate::{
    AgentMessageDeltaNotification, CommandExecutionOutputDeltaNotification, FileChangeOutputDeltaNotification,
    PlanDeltaNotification, ReasoningSummaryTextDeltaNotification, ReasoningTextDeltaNotification,
};

/// A delta of a text.
pub trait TextDelta {
    fn thread_id(&self) -> &str;
    fn text(&self) -> &str;
}

macro_rules! text_deltas {
    ($($params:ident { $($same:ident),* })*) => {
        $(
            impl TextDelta for $params {
                fn thread_id(&self) -> &str {
                    &self.thread_id
                }

                fn text(&self) -> &str {
                    &self.delta
                }
            }

            impl $params {
                pub(crate) fn continues_with(&self, next: &Self) -> bool {
                    self.thread_id == next.thread_id $(&& self.$same == next.$same)*
                }

                pub(crate) fn append(&mut self, next: &Self) {
                    self.delta.push_str(&next.delta);
                }
            }
        )*
    };
}

text_deltas! {
    AgentMessageDeltaNotification { turn_id, item_id }
    PlanDeltaNotification { turn_id, item_id }
    CommandExecutionOutputDeltaNotification { turn_id, item_id }
    FileChangeOutputDeltaNotification { turn_id, item_id }
    ReasoningSummaryTextDeltaNotification { turn_id, item_id, summary_index }
    ReasoningTextDeltaNotification { turn_id, item_id, content_index }
}
