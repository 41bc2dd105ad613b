//! What model calls used and cost. A [`Ledger`] is a folder with one file per month, to which every process of the home
//! appends an [`Entry`] per model call and per turn. [`Prices`] turn tokens into money where a price is configured; none
//! is guessed. A [`Budget`] says what may be spent, and [`Budget::check`] how close the spending is.

mod budget;
mod entry;
mod file;
mod price;
mod usage;

pub use budget::{Budget, Limit, Margin, Spent};
pub use entry::{Entry, ModelCall, Purpose, Tokens, TurnEnd};
pub use file::Ledger;
pub use price::{Money, Price, Prices};
pub use usage::{Group, Usage};
