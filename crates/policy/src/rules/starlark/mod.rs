//! A small Starlark: the language that rules files are written in, without fractions, sets and other files. It
//! knows no rules: the caller provides the functions that a file calls, as a [`Host`].
//!
//! Files are of unknown origin, so everything has a bound: how deep things nest, how many steps are taken, and
//! with them how much is kept. A file that goes beyond is refused; none can hang or break the program.

mod builtins;
mod calls;
mod evaluate;
mod format;
mod heap;
mod lexer;
mod methods;
mod operators;
mod parse;
mod syntax;
mod value;

#[cfg(test)]
mod tests;

pub(super) use evaluate::{Host, run};
pub use lexer::Position;
pub(super) use syntax::Span;
pub(super) use value::HostValue;

/// Where and why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub message: String,
    pub span: Span,
}
