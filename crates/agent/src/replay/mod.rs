//! Running a stored thread again, with what the model answered and what tools gave back taken from its rollout.
//! Nothing is done a second time: no command, no file, no call of a provider. What is worked out anew is all
//! that the agent itself adds: what the model is told at each call, and the turns that clients see.
//!
//! [`Script`] is a rollout, cut into turns and answers; [`Replayed`] stands between a running turn and the
//! world, and notices where the two part; [`compare`] looks at what is left of both in the end. Who runs the
//! turns is a client like any other.

mod agree;
mod answers;
mod compare;
mod cut;
mod lines;
mod replayed;
mod script;
mod steps;

pub use compare::{Aside, Difference, compare};
pub use cut::Work;
pub use replayed::Replayed;
pub use script::{Part, Script, ScriptError, Turn};
pub(crate) use steps::{BetweenCalls, CallPurpose, Stop};
