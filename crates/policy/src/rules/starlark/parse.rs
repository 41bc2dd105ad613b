//! Parses tokens to statements.

use std::rc::Rc;

use super::lexer::{Position, SyntaxError, Token, TokenStream, lex};
use super::syntax::{
    AssignmentTarget, Definition, Expression, ExpressionKind, Parameter, ParameterKind, StarlarkOperator, Statement,
};

mod expression;
mod literals;

/// The deepest nesting of brackets, blocks and operators; each uses stack.
const MAX_DEPTH: usize = 64;

pub(super) fn parse(source: &str) -> ParseResult<Vec<Statement>> {
    let TokenStream { tokens, end } = lex(source)?;
    let mut parser = StarlarkParser { tokens: &tokens, at: 0, end, depth: 0, in_function: false, in_loop: false };
    let mut statements = Vec::new();
    while parser.at < tokens.len() {
        parser.statement(&mut statements)?;
    }
    Ok(statements)
}

struct StarlarkParser<'a> {
    tokens: &'a [(Token, Position)],
    at: usize,
    end: Position,
    depth: usize,
    in_function: bool,
    in_loop: bool,
}

type ParseResult<T> = Result<T, SyntaxError>;

impl StarlarkParser<'_> {
    fn statement(&mut self, statements: &mut Vec<Statement>) -> ParseResult<()> {
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

    fn for_loop(&mut self) -> ParseResult<Statement> {
        self.at += 1;
        let target = self.loop_target()?;
        self.expect_name("in")?;
        let list = self.several()?;
        let outer = std::mem::replace(&mut self.in_loop, true);
        let body = self.block();
        self.in_loop = outer;
        Ok(Statement::For(target, list, body?))
    }

    fn condition(&mut self) -> ParseResult<Statement> {
        let mut branches = Vec::new();
        while self.take_name(if branches.is_empty() { "if" } else { "elif" }) {
            branches.push((self.expression()?, self.block()?));
        }
        let otherwise = if self.take_name("else") { self.block()? } else { Vec::new() };
        Ok(Statement::If(branches, otherwise))
    }

    fn definition(&mut self) -> ParseResult<Statement> {
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

    /// Parameters up to a symbol, which is consumed. Types are allowed and ignored.
    fn parameters(&mut self, end: &'static str, typed: bool) -> ParseResult<Vec<Parameter>> {
        let mut parameters: Vec<Parameter> = Vec::new();
        let mut plain = ParameterKind::One;
        while !self.take(end) {
            let at = self.position();
            if plain != ParameterKind::NamedRest && self.take("*") {
                plain = ParameterKind::Named;
                if self.take(",") {
                    continue;
                }
                self.parameter(ParameterKind::Rest, typed, &mut parameters, at)?;
            } else if self.take("**") {
                plain = ParameterKind::NamedRest;
                self.parameter(ParameterKind::NamedRest, typed, &mut parameters, at)?;
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

    fn parameter(
        &mut self,
        takes: ParameterKind,
        typed: bool,
        parameters: &mut Vec<Parameter>,
        at: Position,
    ) -> ParseResult<()> {
        let name = self.name()?;
        if typed && self.take(":") {
            self.expression()?;
        }
        let may_default = matches!(takes, ParameterKind::One | ParameterKind::Named);
        let default = if may_default && self.take("=") { Some(self.expression()?) } else { None };
        let earlier_default =
            parameters.iter().any(|other| other.takes == ParameterKind::One && other.default.is_some());
        let problem = if parameters.iter().any(|other| other.name == name) {
            "duplicated parameter name"
        } else if takes == ParameterKind::One && default.is_none() && earlier_default {
            "positional parameter after one with a default"
        } else if parameters.iter().any(|other| other.takes == ParameterKind::NamedRest) {
            "nothing may follow the `**` parameter"
        } else {
            parameters.push(Parameter { name, takes, default });
            return Ok(());
        };
        Err(SyntaxError { message: format!("Parse error: {problem}"), at })
    }

    fn simple(&mut self, statements: &mut Vec<Statement>) -> ParseResult<()> {
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
        if matches!(value.kind, ExpressionKind::Name(_)) && self.take(":") {
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
                AssignmentTarget::Several(..) => return Err(SyntaxError { message: NO_TARGET.into(), at }),
                target => statements.push(Statement::Augment(target, operator, self.several()?)),
            }
        } else {
            statements.push(Statement::Expression(value));
        }
        Ok(())
    }

    fn take_augmenting(&mut self) -> Option<StarlarkOperator> {
        const AUGMENTING: &[(&str, StarlarkOperator)] = &[
            ("+=", StarlarkOperator::Add),
            ("-=", StarlarkOperator::Subtract),
            ("*=", StarlarkOperator::Multiply),
            ("//=", StarlarkOperator::Divide),
            ("%=", StarlarkOperator::Remainder),
            ("|=", StarlarkOperator::BitOr),
            ("&=", StarlarkOperator::BitAnd),
            ("^=", StarlarkOperator::BitXor),
            ("<<=", StarlarkOperator::ShiftLeft),
            (">>=", StarlarkOperator::ShiftRight),
        ];
        AUGMENTING.iter().find(|(symbol, _)| self.take(symbol)).map(|(_, operator)| *operator)
    }

    /// The body of a condition or loop: the rest of the line, or an indented block.
    fn block(&mut self) -> ParseResult<Vec<Statement>> {
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

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
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

    /// The position after the last token, which must not span lines.
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

    fn expect(&mut self, symbol: &str) -> ParseResult<()> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn take_name(&mut self, name: &str) -> bool {
        let taken = matches!(self.peek(), Some(Token::Name(found)) if found == name);
        self.at += usize::from(taken);
        taken
    }

    fn expect_name(&mut self, name: &str) -> ParseResult<()> {
        if self.take_name(name) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_token(&mut self, token: &Token) -> ParseResult<()> {
        if self.peek() != Some(token) {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    fn name(&mut self) -> ParseResult<String> {
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

/// Converts the expression on the left of `=` to an assignment target.
fn target(value: Expression, at: Position) -> ParseResult<AssignmentTarget> {
    let span = value.span;
    match value.kind {
        ExpressionKind::Name(name) => Ok(AssignmentTarget::Name(name)),
        ExpressionKind::Tuple(items) | ExpressionKind::List(items) if !items.is_empty() => {
            let targets = items.into_iter().map(|item| {
                let at = item.span.start;
                target(item, at)
            });
            Ok(AssignmentTarget::Several(targets.collect::<Result<_, _>>()?, span))
        }
        ExpressionKind::Element(list, index) => Ok(AssignmentTarget::Element(list, index, span)),
        _ => Err(SyntaxError { message: NO_TARGET.into(), at }),
    }
}

fn too_deep(at: Position) -> SyntaxError {
    SyntaxError { message: "Parse error: too deeply nested".into(), at }
}

/// Whether a word is a keyword, or reserved for later versions of the language.
fn is_keyword(name: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "and", "as", "assert", "break", "class", "continue", "def", "del", "elif", "else", "except", "finally", "for",
        "from", "global", "if", "import", "in", "is", "lambda", "load", "nonlocal", "not", "or", "pass", "raise",
        "return", "try", "while", "with", "yield",
    ];
    KEYWORDS.contains(&name)
}
