//! What model calls used and cost. A [`Ledger`] is a folder with one file per month, to which every process of the home
//! appends an [`Entry`] per model call, per turn and per approval, through a [`Writer`] in the background. A [`Price`] turns tokens into
//! money where one is configured; none is guessed. A [`Budget`] says what may be spent.

mod budget;
mod entry;
mod file;
mod price;
mod summary;
mod usage;
mod writer;

pub use budget::{Budget, Limit, Spent};
pub use entry::{EndedApproval, Entry, ModelCall, Outcome, Purpose, Tokens, TurnWork};
pub use file::{Ledger, today};
pub use price::{Money, Price, find_price};
pub use summary::Summary;
pub use usage::{Group, Usage};
pub use writer::Writer;
