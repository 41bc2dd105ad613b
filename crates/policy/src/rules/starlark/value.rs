//! Values. Compound values are on the [`Heap`](super::heap::Heap) and are referred to by index, so that values can
//! contain each other, and dropping them needs no recursion.

use std::rc::Rc;

#[derive(Clone, Debug)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Text(Rc<str>),
    List(usize),
    Tuple(usize),
    Dict(usize),
    /// A function of the file's own.
    Function(usize),
    /// A built-in function.
    Builtin(&'static str),
    /// A method bound to a value.
    Method(usize),
}

impl Value {
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// The name of its type.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Text(_) => "string",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Dict(_) => "dict",
            Self::Function(_) | Self::Builtin(_) | Self::Method(_) => "function",
        }
    }
}

/// A value as a [`Host`](super::Host) gets it, without references to the heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum HostValue {
    Text(String),
    List(Vec<HostValue>),
    /// Anything else, by the name of its type.
    Other(&'static str),
}

impl HostValue {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::List(_) => "list",
            Self::Other(kind) => kind,
        }
    }
}
