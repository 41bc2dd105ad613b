//! Parses expressions, from the lowest precedence to the highest.

use std::rc::Rc;

use super::literals::{number, pieces};
use super::{ParseResult, StarlarkParser, is_keyword, target, too_deep};
use crate::rules::starlark::lexer::{Position, Token};
use crate::rules::starlark::syntax::{
    Argument, AssignmentTarget, Clause, Definition, Expression, ExpressionKind, Span, StarlarkOperator, Statement,
};

/// Comparisons have the lowest precedence of these operators, and cannot be chained.
const COMPARISONS: &[(&str, StarlarkOperator)] = &[
    ("==", StarlarkOperator::Equal),
    ("!=", StarlarkOperator::Unequal),
    ("<=", StarlarkOperator::LessOrEqual),
    (">=", StarlarkOperator::GreaterOrEqual),
    ("<", StarlarkOperator::Less),
    (">", StarlarkOperator::Greater),
];

/// Other operators by precedence, lowest first.
const LEVELS: &[&[(&str, StarlarkOperator)]] = &[
    &[("|", StarlarkOperator::BitOr)],
    &[("^", StarlarkOperator::BitXor)],
    &[("&", StarlarkOperator::BitAnd)],
    &[("<<", StarlarkOperator::ShiftLeft), (">>", StarlarkOperator::ShiftRight)],
    &[("+", StarlarkOperator::Add), ("-", StarlarkOperator::Subtract)],
    &[("*", StarlarkOperator::Multiply), ("//", StarlarkOperator::Divide), ("%", StarlarkOperator::Remainder)],
];

/// The greatest height of an expression of operators alone, such as `a + b + c`.
const MAX_HEIGHT: usize = 200;

impl StarlarkParser<'_> {
    /// One expression, or several with commas between them.
    pub(super) fn several(&mut self) -> ParseResult<Expression> {
        let start = self.position();
        let first = self.expression()?;
        if self.peek() != Some(&Token::Symbol(",")) {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.take(",") {
            if !self.begins_expression() {
                break;
            }
            items.push(self.expression()?);
        }
        self.made(ExpressionKind::Tuple(items), start)
    }

    fn begins_expression(&self) -> bool {
        match self.peek() {
            Some(Token::Name(name)) => !is_keyword(name) || ["not", "lambda"].contains(&name.as_str()),
            Some(Token::Text { .. } | Token::Number(_)) => true,
            Some(Token::Symbol(symbol)) => ["(", "[", "{", "-", "+"].contains(symbol),
            _ => false,
        }
    }

    pub(super) fn expression(&mut self) -> ParseResult<Expression> {
        self.nested(|parser| {
            let start = parser.position();
            if parser.take_name("lambda") {
                return parser.lambda(start);
            }
            let value = parser.or()?;
            if !parser.take_name("if") {
                return Ok(value);
            }
            let condition = parser.or()?;
            parser.expect_name("else")?;
            let otherwise = parser.expression()?;
            parser.made(ExpressionKind::Choice(Box::new([value, condition, otherwise])), start)
        })
    }

    fn lambda(&mut self, start: Position) -> ParseResult<Expression> {
        let parameters = self.parameters(":", false)?;
        let body = vec![Statement::Return(Some(self.expression()?))];
        self.made(ExpressionKind::Lambda(Rc::new(Definition { name: "lambda".into(), parameters, body })), start)
    }

    fn or(&mut self) -> ParseResult<Expression> {
        let start = self.position();
        let mut left = self.and()?;
        while self.take_name("or") {
            let right = self.and()?;
            left = self.made(ExpressionKind::Or(Box::new(left), Box::new(right)), start)?;
        }
        Ok(left)
    }

    fn and(&mut self) -> ParseResult<Expression> {
        let start = self.position();
        let mut left = self.not()?;
        while self.take_name("and") {
            let right = self.not()?;
            left = self.made(ExpressionKind::And(Box::new(left), Box::new(right)), start)?;
        }
        Ok(left)
    }

    fn not(&mut self) -> ParseResult<Expression> {
        let start = self.position();
        if self.take_name("not") {
            let value = self.nested(Self::not)?;
            return self.made(ExpressionKind::Not(Box::new(value)), start);
        }
        let left = self.binary(0)?;
        let Some(operator) = self.take_comparison() else { return Ok(left) };
        let right = self.binary(0)?;
        let behind = self.at;
        if self.take_comparison().is_some() {
            self.at = behind;
            return Err(self.unexpected());
        }
        self.made(ExpressionKind::Binary(operator, Box::new(left), Box::new(right)), start)
    }

    fn take_comparison(&mut self) -> Option<StarlarkOperator> {
        if self.take_name("in") {
            return Some(StarlarkOperator::In);
        }
        if matches!(self.tokens.get(self.at + 1), Some((Token::Name(name), _)) if name == "in") && self.take_name("not")
        {
            self.at += 1;
            return Some(StarlarkOperator::NotIn);
        }
        COMPARISONS.iter().find(|(symbol, _)| self.take(symbol)).map(|(_, operator)| *operator)
    }

    /// Consumes the next operator if its precedence is at least `least`. Returns it with its precedence.
    fn take_operator(&mut self, least: usize) -> Option<(StarlarkOperator, usize)> {
        let levels = LEVELS.iter().enumerate().skip(least);
        let mut operators = levels.flat_map(|(level, operators)| operators.iter().map(move |found| (found, level)));
        operators.find(|((symbol, _), _)| self.take(symbol)).map(|((_, operator), level)| (*operator, level))
    }

    fn binary(&mut self, least: usize) -> ParseResult<Expression> {
        let start = self.position();
        let mut left = self.unary()?;
        while let Some((operator, level)) = self.take_operator(least) {
            let right = self.binary(level + 1)?;
            left = self.made(ExpressionKind::Binary(operator, Box::new(left), Box::new(right)), start)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> ParseResult<Expression> {
        let start = self.position();
        if self.take("-") {
            let value = self.nested(Self::unary)?;
            return self.made(ExpressionKind::Negate(Box::new(value)), start);
        }
        if self.take("+") {
            return self.nested(Self::unary);
        }
        self.primary()
    }

    fn primary(&mut self) -> ParseResult<Expression> {
        let start = self.position();
        let mut value = self.atom()?;
        loop {
            let kind = if self.take("(") {
                ExpressionKind::Call(Box::new(value), self.arguments()?)
            } else if self.take(".") {
                ExpressionKind::Attribute(Box::new(value), self.name()?)
            } else if self.take("[") {
                self.element(value)?
            } else {
                return Ok(value);
            };
            value = self.made(kind, start)?;
        }
    }

    fn atom(&mut self) -> ParseResult<Expression> {
        let start = self.position();
        let Some(token) = self.peek().cloned() else { return Err(self.unexpected()) };
        let kind = match token {
            Token::Text { text, formatted: true } => ExpressionKind::Format(pieces(&text, start)?),
            Token::Text { text, formatted: false } => ExpressionKind::Text(text.into()),
            Token::Number(text) => ExpressionKind::Number(number(&text, start)?),
            Token::Name(name) if !is_keyword(&name) => ExpressionKind::Name(name),
            Token::Symbol("[") => return self.list(start),
            Token::Symbol("{") => return self.dict(start),
            Token::Symbol("(") => return self.parenthesised(start),
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        self.made(kind, start)
    }

    fn parenthesised(&mut self, start: Position) -> ParseResult<Expression> {
        self.at += 1;
        if self.take(")") {
            return self.made(ExpressionKind::Tuple(Vec::new()), start);
        }
        let inner = self.several()?;
        self.expect(")")?;
        self.made(inner.kind, start)
    }

    fn list(&mut self, start: Position) -> ParseResult<Expression> {
        self.at += 1;
        let mut items = Vec::new();
        while !self.take("]") {
            items.push(self.expression()?);
            if items.len() == 1 && self.is_name("for") {
                let clauses = self.clauses("]")?;
                return self.made(ExpressionKind::ListOf(Box::new(items.remove(0)), clauses), start);
            }
            if !self.take(",") {
                self.expect("]")?;
                break;
            }
        }
        self.made(ExpressionKind::List(items), start)
    }

    fn dict(&mut self, start: Position) -> ParseResult<Expression> {
        self.at += 1;
        let mut pairs = Vec::new();
        while !self.take("}") {
            let key = self.expression()?;
            self.expect(":")?;
            pairs.push((key, self.expression()?));
            if pairs.len() == 1 && self.is_name("for") {
                let clauses = self.clauses("}")?;
                return self.made(ExpressionKind::DictOf(Box::new(pairs.remove(0)), clauses), start);
            }
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        self.made(ExpressionKind::Dict(pairs), start)
    }

    /// The clauses of a comprehension, up to its closing bracket, which is consumed.
    fn clauses(&mut self, end: &str) -> ParseResult<Vec<Clause>> {
        let mut clauses = Vec::new();
        while !self.take(end) {
            // Each is evaluated inside the one before.
            if clauses.len() >= super::MAX_DEPTH {
                return Err(too_deep(self.position()));
            }
            if self.take_name("for") {
                let target = self.loop_target()?;
                self.expect_name("in")?;
                clauses.push(Clause::For(target, self.nested(Self::or)?));
            } else if self.take_name("if") {
                clauses.push(Clause::If(self.nested(Self::or)?));
            } else {
                return Err(self.unexpected());
            }
        }
        Ok(clauses)
    }

    /// The targets of a loop: names, which may be in brackets.
    pub(super) fn loop_target(&mut self) -> ParseResult<AssignmentTarget> {
        let start = self.position();
        let mut items = vec![self.primary()?];
        let mut several = false;
        while self.take(",") {
            several = true;
            if self.is_name("in") {
                break;
            }
            items.push(self.primary()?);
        }
        let value = if several { self.made(ExpressionKind::Tuple(items), start)? } else { items.remove(0) };
        target(value, start)
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Some(Token::Name(found)) if found == name)
    }

    fn arguments(&mut self) -> ParseResult<Vec<Argument>> {
        let mut arguments = Vec::new();
        while !self.take(")") {
            let named = match (self.peek(), self.tokens.get(self.at + 1)) {
                (Some(Token::Name(name)), Some((Token::Symbol("="), _))) => Some(name.clone()),
                _ => None,
            };
            arguments.push(if let Some(name) = named {
                self.at += 2;
                Argument::Named(name, self.expression()?)
            } else if self.take("**") {
                Argument::EachNamed(self.expression()?)
            } else if self.take("*") {
                Argument::Each(self.expression()?)
            } else {
                Argument::Plain(self.expression()?)
            });
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(arguments)
    }

    /// The index or slice after `value[`.
    fn element(&mut self, value: Expression) -> ParseResult<ExpressionKind> {
        let mut parts = [None, None, None];
        let mut part = 0;
        loop {
            if self.take("]") {
                break;
            }
            if part < 2 && self.take(":") {
                part += 1;
            } else if parts[part].is_none() {
                parts[part] = Some(Box::new(self.several()?));
            } else {
                return Err(self.unexpected());
            }
        }
        match parts {
            [Some(index), None, None] if part == 0 => Ok(ExpressionKind::Element(Box::new(value), index)),
            [None, None, None] if part == 0 => Err(self.unexpected()),
            parts => Ok(ExpressionKind::Slice(Box::new(value), parts)),
        }
    }

    fn made(&self, kind: ExpressionKind, start: Position) -> ParseResult<Expression> {
        let height = 1 + inner_height(&kind);
        if height > MAX_HEIGHT {
            return Err(too_deep(start));
        }
        Ok(Expression { kind, span: Span { start, end: self.last_end() }, height })
    }
}

fn inner_height(kind: &ExpressionKind) -> usize {
    let of = |items: &[Expression]| items.iter().map(|item| item.height).max().unwrap_or(0);
    let pair = |(key, value): &(Expression, Expression)| key.height.max(value.height);
    match kind {
        ExpressionKind::Text(_)
        | ExpressionKind::Format(_)
        | ExpressionKind::Number(_)
        | ExpressionKind::Name(_)
        | ExpressionKind::Lambda(_) => 0,
        ExpressionKind::List(items) | ExpressionKind::Tuple(items) => of(items),
        ExpressionKind::Dict(pairs) => pairs.iter().map(pair).max().unwrap_or(0),
        ExpressionKind::ListOf(item, clauses) => item.height.max(clauses_height(clauses)),
        ExpressionKind::DictOf(item, clauses) => pair(item).max(clauses_height(clauses)),
        ExpressionKind::Negate(value) | ExpressionKind::Not(value) | ExpressionKind::Attribute(value, _) => {
            value.height
        }
        ExpressionKind::And(left, right)
        | ExpressionKind::Or(left, right)
        | ExpressionKind::Binary(_, left, right)
        | ExpressionKind::Element(left, right) => left.height.max(right.height),
        ExpressionKind::Choice(parts) => of(&parts[..]),
        ExpressionKind::Call(function, arguments) => {
            let height = |argument: &Argument| match argument {
                Argument::Plain(value) | Argument::Named(_, value) => value.height,
                Argument::Each(value) | Argument::EachNamed(value) => value.height,
            };
            arguments.iter().map(height).max().unwrap_or(0).max(function.height)
        }
        ExpressionKind::Slice(value, parts) => {
            parts.iter().flatten().map(|part| part.height).max().unwrap_or(0).max(value.height)
        }
    }
}

fn clauses_height(clauses: &[Clause]) -> usize {
    let height = |clause: &Clause| match clause {
        Clause::For(_, value) | Clause::If(value) => value.height,
    };
    clauses.len() + clauses.iter().map(height).max().unwrap_or(0)
}
