//! Replays: running a stored thread again with the model's answers and the tools' outputs of its rollout. No command
//! runs, no file is changed and no provider is called. What is computed again, and compared with the recording, is the
//! input of each model call and the turns that clients see.
//!
//! [`Script`] is a rollout, cut into turns and answers. [`ReplaySession`] gives a running turn the recorded outcomes in
//! place of tools and clients, and records the first difference. [`compare`] compares the two rollouts at the end. The
//! turns are started by an ordinary client.

mod agree;
mod answers;
mod compare;
mod cut;
mod lines;
mod script;
mod session;
mod steps;

pub use compare::{CompareOptions, Difference, compare};
pub use cut::Work;
pub use script::{Script, ScriptError, Segment, Turn};
pub use session::ReplaySession;
pub(crate) use steps::{BetweenCalls, CallPurpose, Stop};
