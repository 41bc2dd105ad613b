//! Reviews: turns whose result is a text about changes.

use loomd_protocol::{self as protocol, ThreadItem};

use crate::collect::CompletedTurn;
use crate::error::Error;
use crate::turn::Turn;

/// A running review.
#[derive(Debug)]
pub struct Review {
    /// The thread of its events: a new one for a detached review.
    pub thread_id: String,
    pub turn: Turn,
}

/// The result of a review.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletedReview {
    pub thread_id: String,
    pub turn: protocol::Turn,
    pub review_text: String,
    pub items: Vec<ThreadItem>,
}

impl Review {
    /// Waits for the end of the review.
    pub async fn finish(self) -> Result<CompletedReview, Error> {
        let CompletedTurn { turn, items, agent_message, .. } = self.turn.finish().await?;
        let text = items.iter().rev().find_map(|item| match item {
            ThreadItem::ExitedReviewMode { review, .. } => Some(review.clone()),
            _ => None,
        });
        let review_text = text.or(agent_message).unwrap_or_default();
        Ok(CompletedReview { thread_id: self.thread_id, turn, review_text, items })
    }
}
