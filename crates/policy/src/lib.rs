//! Decisions about commands: what a command line does, which rules apply to it, and whether it runs, needs an approval
//! or is refused. Starts no process and sets up no sandbox: callers pass an argument list, and `exec` runs allowed
//! commands.
//!
//! Where to start: [`decide`] for the decision, [`rules`] for the files that users write, [`command_actions`] for
//! what clients show of a command.

mod actions;
mod decide;
mod git_environment;
mod heredoc;
#[cfg(test)]
mod oracle;
mod quote;
mod repository;
pub mod rules;
mod safety;
mod script;
mod suspects;
mod trust;
mod word;

pub use actions::command_actions;
pub use decide::{Decision, DecisionRequest, approval_key, decide, refuse_escalation};
pub use git_environment::restrain_git;
pub use heredoc::Heredoc;
pub use quote::join;
pub use safety::{is_dangerous, is_known_safe};
pub use script::{Script, script_of};
pub use trust::{Origin, Trust};
pub use word::Word;
