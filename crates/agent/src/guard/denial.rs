//! The refusal of an action.

/// Why an action is not taken.
#[derive(Debug)]
pub(crate) enum Denial {
    /// With the reason for clients and the model.
    Declined(String),
    /// The turn is interrupted.
    Cancelled,
}

/// The reason when a user declines a command.
pub(crate) const DECLINED: &str = "exec command rejected by user";

/// The reason of an approval request for a retry without the sandbox.
pub(super) const RETRY: &str = "command failed; retry without sandbox?";
