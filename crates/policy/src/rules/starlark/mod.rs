//! A subset of Starlark, the language of rules files, without floats, sets and `load`. It is independent of rules: the
//! caller provides the functions that a file calls, as a [`Host`].
//!
//! Files are untrusted, so nesting, steps and memory are bounded. A file beyond a bound is refused; no file can hang or
//! crash the program.

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
