//! From tokens to statements.

use std::rc::Rc;

use super::lexer::{Lexed, Position, SyntaxError, Token, lex};
use super::syntax::{Definition, Expression, Kind, Operator, Parameter, Statement, Takes, Target};

mod expression;
mod literals;

/// Brackets, blocks and operators in each other; nobody needs more, and each takes stack.
const MAX_DEPTH: usize = 64;

pub(super) fn parse(source: &str) -> Parsed<Vec<Statement>> {
    let Lexed { tokens, end } = lex(source)?;
    let mut parser = Parser { tokens: &tokens, at: 0, end, depth: 0, in_function: false, in_loop: false };
    let mut statements = Vec::new();
    while parser.at < tokens.len() {
        parser.statement(&mut statements)?;
    }
    Ok(statements)
}

struct Parser<'a> {
    tokens: &'a [(Token, Position)],
    at: usize,
    end: Position,
    depth: usize,
    in_function: bool,
    in_loop: bool,
}

type Parsed<T> = Result<T, SyntaxError>;

impl Parser<'_> {
    fn statement(&mut self, statements: &mut Vec<Statement>) -> Parsed<()> {
        self.nested(|parser| {
            let compound = match parser.peek() {
                Some(Token::Name(name)) => match name.as_str() {
                    "for" => Some(parser.for_loop()?),
                    "if" => Some(parser.condition()?),
                    "def" => Some(parser.definition()?),
                    _ => None,
                },
                _ => None,
            };
            if let Some(statement) = compound {
                statements.push(statement);
                return Ok(());
            }
            parser.simple(statements)?;
            while parser.take(";") {
                if parser.peek() != Some(&Token::Line) {
                    parser.simple(statements)?;
                }
            }
            parser.expect_token(&Token::Line)
        })
    }

    fn for_loop(&mut self) -> Parsed<Statement> {
        self.at += 1;
        let target = self.loop_target()?;
        self.expect_name("in")?;
        let list = self.several()?;
        let outer = std::mem::replace(&mut self.in_loop, true);
        let body = self.block();
        self.in_loop = outer;
        Ok(Statement::For(target, list, body?))
    }

    fn condition(&mut self) -> Parsed<Statement> {
        let mut branches = Vec::new();
        while self.take_name(if branches.is_empty() { "if" } else { "elif" }) {
            branches.push((self.expression()?, self.block()?));
        }
        let otherwise = if self.take_name("else") { self.block()? } else { Vec::new() };
        Ok(Statement::If(branches, otherwise))
    }

    fn definition(&mut self) -> Parsed<Statement> {
        self.at += 1;
        let name = self.name()?;
        self.expect("(")?;
        let parameters = self.parameters(")", true)?;
        if self.take("->") {
            self.expression()?;
        }
        let outer = (std::mem::replace(&mut self.in_function, true), std::mem::replace(&mut self.in_loop, false));
        let body = self.block();
        (self.in_function, self.in_loop) = outer;
        Ok(Statement::Define(Rc::new(Definition { name, parameters, body: body? })))
    }

    /// Parameters up to a symbol, which is taken. Types are allowed and mean nothing.
    fn parameters(&mut self, end: &'static str, typed: bool) -> Parsed<Vec<Parameter>> {
        let mut parameters: Vec<Parameter> = Vec::new();
        let mut plain = Takes::One;
        while !self.take(end) {
            let at = self.position();
            if plain != Takes::NamedRest && self.take("*") {
                plain = Takes::Named;
                if self.take(",") {
                    continue;
                }
                self.parameter(Takes::Rest, typed, &mut parameters, at)?;
            } else if self.take("**") {
                plain = Takes::NamedRest;
                self.parameter(Takes::NamedRest, typed, &mut parameters, at)?;
            } else {
                self.parameter(plain, typed, &mut parameters, at)?;
            }
            if !self.take(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok(parameters)
    }

    fn parameter(&mut self, takes: Takes, typed: bool, parameters: &mut Vec<Parameter>, at: Position) -> Parsed<()> {
        let name = self.name()?;
        if typed && self.take(":") {
            self.expression()?;
        }
        let may_default = matches!(takes, Takes::One | Takes::Named);
        let default = if may_default && self.take("=") { Some(self.expression()?) } else { None };
        let earlier_default = parameters.iter().any(|other| other.takes == Takes::One && other.default.is_some());
        let problem = if parameters.iter().any(|other| other.name == name) {
            "duplicated parameter name"
        } else if takes == Takes::One && default.is_none() && earlier_default {
            "positional parameter after one with a default"
        } else if parameters.iter().any(|other| other.takes == Takes::NamedRest) {
            "nothing may follow the `**` parameter"
        } else {
            parameters.push(Parameter { name, takes, default });
            return Ok(());
        };
        Err(SyntaxError { message: format!("Parse error: {problem}"), at })
    }

    fn simple(&mut self, statements: &mut Vec<Statement>) -> Parsed<()> {
        let at = self.position();
        if self.take_name("pass") {
            return Ok(());
        }
        for (name, allowed, statement) in
            [("break", self.in_loop, Statement::Break), ("continue", self.in_loop, Statement::Continue)]
        {
            if self.take_name(name) {
                statements.push(statement);
                let message = format!("Parse error: `{name}` outside of a loop");
                return if allowed { Ok(()) } else { Err(SyntaxError { message, at }) };
            }
        }
        if self.take_name("return") {
            if !self.in_function {
                return Err(SyntaxError { message: "Parse error: `return` outside of a function".into(), at });
            }
            let bare = matches!(self.peek(), None | Some(Token::Line | Token::Symbol(";")));
            statements.push(Statement::Return(if bare { None } else { Some(self.several()?) }));
            return Ok(());
        }
        let value = self.several()?;
        if matches!(value.kind, Kind::Name(_)) && self.take(":") {
            self.expression()?;
            if self.peek() != Some(&Token::Symbol("=")) {
                return Err(self.unexpected());
            }
        }
        if self.take("=") {
            let target = target(value, at)?;
            statements.push(Statement::Assign(target, self.several()?));
        } else if let Some(operator) = self.take_augmenting() {
            match target(value, at)? {
                Target::Several(..) => return Err(SyntaxError { message: NO_TARGET.into(), at }),
                target => statements.push(Statement::Augment(target, operator, self.several()?)),
            }
        } else {
            statements.push(Statement::Expression(value));
        }
        Ok(())
    }

    fn take_augmenting(&mut self) -> Option<Operator> {
        const AUGMENTING: &[(&str, Operator)] = &[
            ("+=", Operator::Add),
            ("-=", Operator::Subtract),
            ("*=", Operator::Multiply),
            ("//=", Operator::Divide),
            ("%=", Operator::Remainder),
            ("|=", Operator::BitOr),
            ("&=", Operator::BitAnd),
            ("^=", Operator::BitXor),
            ("<<=", Operator::ShiftLeft),
            (">>=", Operator::ShiftRight),
        ];
        AUGMENTING.iter().find(|(symbol, _)| self.take(symbol)).map(|(_, operator)| *operator)
    }

    /// What is done under a condition or in a loop: the rest of the line, or an indented block.
    fn block(&mut self) -> Parsed<Vec<Statement>> {
        self.expect(":")?;
        let mut body = Vec::new();
        if self.peek() != Some(&Token::Line) {
            self.statement(&mut body)?;
            return Ok(body);
        }
        self.at += 1;
        self.expect_token(&Token::Indent)?;
        while self.peek() != Some(&Token::Dedent) {
            self.statement(&mut body)?;
        }
        self.at += 1;
        Ok(body)
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            return Err(too_deep(self.position()));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn position(&self) -> Position {
        self.tokens.get(self.at).map_or(self.end, |(_, at)| *at)
    }

    /// Just behind the last token, which must have been of one line.
    fn last_end(&self) -> Position {
        let Some((token, at)) = self.at.checked_sub(1).and_then(|last| self.tokens.get(last)) else { return self.end };
        let width = match token {
            Token::Name(text) | Token::Number(text) => text.chars().count(),
            Token::Text { text, .. } => text.chars().count() + 2,
            Token::Symbol(symbol) => symbol.len(),
            Token::Line | Token::Indent | Token::Dedent => 1,
        };
        Position { column: at.column + width, ..*at }
    }

    fn take(&mut self, symbol: &str) -> bool {
        let taken = matches!(self.peek(), Some(Token::Symbol(found)) if *found == symbol);
        self.at += usize::from(taken);
        taken
    }

    fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn take_name(&mut self, name: &str) -> bool {
        let taken = matches!(self.peek(), Some(Token::Name(found)) if found == name);
        self.at += usize::from(taken);
        taken
    }

    fn expect_name(&mut self, name: &str) -> Parsed<()> {
        if self.take_name(name) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_token(&mut self, token: &Token) -> Parsed<()> {
        if self.peek() != Some(token) {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    fn name(&mut self) -> Parsed<String> {
        match self.peek().cloned() {
            Some(Token::Name(name)) if !is_keyword(&name) => {
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn unexpected(&self) -> SyntaxError {
        let what = match self.peek() {
            Some(Token::Name(name)) if is_keyword(name) => format!("keyword '{name}'"),
            Some(Token::Name(name)) => format!("identifier '{name}'"),
            Some(Token::Text { text, .. }) => format!("string literal {text:?}"),
            Some(Token::Number(number)) => format!("number {number}"),
            Some(Token::Symbol(symbol)) => format!("symbol '{symbol}'"),
            Some(Token::Line) => "new line".into(),
            Some(Token::Indent | Token::Dedent) => "indentation".into(),
            None => "end of file".into(),
        };
        SyntaxError { message: format!("Parse error: unexpected {what} here"), at: self.position() }
    }
}

const NO_TARGET: &str = "Parse error: this cannot be assigned to";

/// An expression that turned out to stand left of `=`.
fn target(value: Expression, at: Position) -> Parsed<Target> {
    let span = value.span;
    match value.kind {
        Kind::Name(name) => Ok(Target::Name(name)),
        Kind::Tuple(items) | Kind::List(items) if !items.is_empty() => {
            let targets = items.into_iter().map(|item| {
                let at = item.span.start;
                target(item, at)
            });
            Ok(Target::Several(targets.collect::<Result<_, _>>()?, span))
        }
        Kind::Element(list, index) => Ok(Target::Element(list, index, span)),
        _ => Err(SyntaxError { message: NO_TARGET.into(), at }),
    }
}

fn too_deep(at: Position) -> SyntaxError {
    SyntaxError { message: "Parse error: too deeply nested".into(), at }
}

/// Words that are no names; some only so that they can be used one day.
fn is_keyword(name: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "and", "as", "assert", "break", "class", "continue", "def", "del", "elif", "else", "except", "finally", "for",
        "from", "global", "if", "import", "in", "is", "lambda", "load", "nonlocal", "not", "or", "pass", "raise",
        "return", "try", "while", "with", "yield",
    ];
    KEYWORDS.contains(&name)
}
