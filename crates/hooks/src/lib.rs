//! Hooks: programs of the user that are told what an agent is about to do or has done, and may add to it or
//! object. Which there are ([`Hooks::load`]), what they are told ([`Occasion`]), how one is run
//! ([`run_all`]) and what its answer means ([`Effect`]). When they run, and what becomes of an effect, is
//! for callers to say: this crate does not know what a turn is.

mod answer;
mod load;
mod occasion;
mod run;

pub use answer::Effect;
pub use load::{Handler, Hooks, Loaded, Problem};
pub use occasion::{BASH, Occasion, PermissionMode, Scene, SessionSource};
pub use run::{Place, Ran, Run, run_all};
