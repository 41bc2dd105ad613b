//! The syntax tree of a file.

use std::rc::Rc;

use super::lexer::Position;

/// A range of positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Span {
    pub start: Position,
    pub end: Position,
}

#[derive(Clone, Debug)]
pub(super) enum Statement {
    Expression(Expression),
    Assign(AssignmentTarget, Expression),
    /// `target op= value`
    Augment(AssignmentTarget, StarlarkOperator, Expression),
    /// Conditions with their bodies, then the `else` body.
    If(Vec<(Expression, Vec<Statement>)>, Vec<Statement>),
    For(AssignmentTarget, Expression, Vec<Statement>),
    Define(Rc<Definition>),
    Return(Option<Expression>),
    Break,
    Continue,
}

/// The left side of an assignment.
#[derive(Clone, Debug)]
pub(super) enum AssignmentTarget {
    Name(String),
    Several(Vec<AssignmentTarget>, Span),
    Element(Box<Expression>, Box<Expression>, Span),
}

#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub kind: ExpressionKind,
    pub span: Span,
    /// The height of the tree of this expression.
    pub height: usize,
}

#[derive(Clone, Debug)]
pub(super) enum ExpressionKind {
    Text(Rc<str>),
    Format(Vec<FormatPiece>),
    Number(i64),
    Name(String),
    List(Vec<Expression>),
    Tuple(Vec<Expression>),
    Dict(Vec<(Expression, Expression)>),
    /// `[item for … if …]`
    ListOf(Box<Expression>, Vec<Clause>),
    /// `{key: value for … if …}`
    DictOf(Box<(Expression, Expression)>, Vec<Clause>),
    Negate(Box<Expression>),
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Binary(StarlarkOperator, Box<Expression>, Box<Expression>),
    /// `first if second else third`
    Choice(Box<[Expression; 3]>),
    Call(Box<Expression>, Vec<Argument>),
    Attribute(Box<Expression>, String),
    Element(Box<Expression>, Box<Expression>),
    Slice(Box<Expression>, [Option<Box<Expression>>; 3]),
    Lambda(Rc<Definition>),
}

/// A piece of a format string.
#[derive(Clone, Debug)]
pub(super) enum FormatPiece {
    Text(String),
    Name(String),
}

#[derive(Clone, Debug)]
pub(super) enum Clause {
    For(AssignmentTarget, Expression),
    If(Expression),
}

#[derive(Clone, Debug)]
pub(super) enum Argument {
    Plain(Expression),
    Named(String, Expression),
    /// `*list`
    Each(Expression),
    /// `**dict`
    EachNamed(Expression),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StarlarkOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
    BitOr,
    BitXor,
    BitAnd,
    ShiftLeft,
    ShiftRight,
}

impl StarlarkOperator {
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "//",
            Self::Remainder => "%",
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::NotIn => "not in",
            Self::BitOr => "|",
            Self::BitXor => "^",
            Self::BitAnd => "&",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
        }
    }
}

/// A function of the file's own.
#[derive(Debug)]
pub(super) struct Definition {
    pub name: String,
    pub parameters: Vec<Parameter>,
    pub body: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub name: String,
    pub takes: ParameterKind,
    pub default: Option<Expression>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterKind {
    One,
    /// Keyword-only.
    Named,
    /// `*args`: the arguments that are left.
    Rest,
    /// `**kwargs`: the named arguments that are left.
    NamedRest,
}
