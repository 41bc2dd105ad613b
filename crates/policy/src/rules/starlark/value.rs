//! Values. What has parts lives on the [`Heap`](super::heap::Heap) and is known by its number there, so that
//! values can hold each other in any way without anybody having to take them apart again.

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
    /// A function that is there already.
    Builtin(&'static str),
    /// A function of a value.
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

/// A value as those see it that a file's own functions are none of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Plain {
    Text(String),
    List(Vec<Plain>),
    /// Anything else, by the name of its type.
    Other(&'static str),
}

impl Plain {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::List(_) => "list",
            Self::Other(kind) => kind,
        }
    }
}
