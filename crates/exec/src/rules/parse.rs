//! The grammar of rules files: the part of Starlark that lists of rules are written in. Assignments, calls,
//! loops over lists, strings, lists and `+`; no conditions and no functions of one's own.

use super::lexer::{Lexed, Position, SyntaxError, Token, lex};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    Assign(String, Expression),
    Expression(Expression),
    For(String, Expression, Vec<Statement>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expression {
    pub kind: Kind,
    pub start: Position,
    pub end: Position,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text(String),
    /// Text with names in braces.
    Format(String),
    Number(String),
    Name(String),
    List(Vec<Expression>),
    /// `[item for name in list]`
    Each(Box<Expression>, String, Box<Expression>),
    Add(Box<Expression>, Box<Expression>),
    Call(String, Vec<(Option<String>, Expression)>),
}

/// Brackets and loops in each other; nobody needs more, and each takes stack.
const MAX_DEPTH: usize = 64;

pub(super) fn parse(source: &str) -> Result<Vec<Statement>, SyntaxError> {
    let Lexed { tokens, end } = lex(source)?;
    let mut parser = Parser { tokens: &tokens, at: 0, end, depth: 0 };
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
}

type Parsed<T> = Result<T, SyntaxError>;

impl Parser<'_> {
    fn statement(&mut self, statements: &mut Vec<Statement>) -> Parsed<()> {
        self.nested(|parser| {
            if parser.take_name("for") {
                let name = parser.name()?;
                parser.expect_name("in")?;
                let list = parser.expression()?;
                parser.expect(':')?;
                statements.push(Statement::For(name, list, parser.block()?));
                return Ok(());
            }
            parser.simple(statements)?;
            while parser.take(';') {
                if parser.peek() != Some(&Token::Line) {
                    parser.simple(statements)?;
                }
            }
            parser.expect_token(&Token::Line)
        })
    }

    fn simple(&mut self, statements: &mut Vec<Statement>) -> Parsed<()> {
        if self.take_name("pass") {
            return Ok(());
        }
        let value = self.expression()?;
        match &value.kind {
            Kind::Name(name) if self.take('=') => statements.push(Statement::Assign(name.clone(), self.expression()?)),
            _ => statements.push(Statement::Expression(value)),
        }
        Ok(())
    }

    /// The body of a loop: the rest of the line, or an indented block.
    fn block(&mut self) -> Parsed<Vec<Statement>> {
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

    fn expression(&mut self) -> Parsed<Expression> {
        self.nested(|parser| {
            let mut left = parser.primary()?;
            while parser.take('+') {
                let right = parser.primary()?;
                let (start, end) = (left.start, right.end);
                left = Expression { kind: Kind::Add(Box::new(left), Box::new(right)), start, end };
            }
            Ok(left)
        })
    }

    fn primary(&mut self) -> Parsed<Expression> {
        let start = self.position();
        let kind = match self.peek().cloned() {
            Some(Token::Text { text, formatted }) => {
                self.at += 1;
                if formatted { Kind::Format(text) } else { Kind::Text(text) }
            }
            Some(Token::Number(number)) => {
                self.at += 1;
                Kind::Number(number)
            }
            Some(Token::Symbol('[')) => {
                self.at += 1;
                self.list()?
            }
            Some(Token::Symbol('(')) => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(')')?;
                inner.kind
            }
            Some(Token::Name(name)) if !is_keyword(&name) => {
                self.at += 1;
                if self.take('(') { Kind::Call(name, self.arguments()?) } else { Kind::Name(name) }
            }
            _ => return Err(self.unexpected()),
        };
        Ok(Expression { kind, start, end: self.last_end() })
    }

    fn list(&mut self) -> Parsed<Kind> {
        let mut items = Vec::new();
        while !self.take(']') {
            items.push(self.expression()?);
            if items.len() == 1 && self.take_name("for") {
                let name = self.name()?;
                self.expect_name("in")?;
                let list = self.expression()?;
                self.expect(']')?;
                return Ok(Kind::Each(Box::new(items.remove(0)), name, Box::new(list)));
            }
            if !self.take(',') {
                self.expect(']')?;
                break;
            }
        }
        Ok(Kind::List(items))
    }

    fn arguments(&mut self) -> Parsed<Vec<(Option<String>, Expression)>> {
        let mut arguments = Vec::new();
        while !self.take(')') {
            let named = match (self.peek(), self.tokens.get(self.at + 1)) {
                (Some(Token::Name(name)), Some((Token::Symbol('='), _))) => Some(name.clone()),
                _ => None,
            };
            if named.is_some() {
                self.at += 2;
            }
            arguments.push((named, self.expression()?));
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(arguments)
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            return Err(SyntaxError { message: "Parse error: too deeply nested".into(), at: self.position() });
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
            _ => 1,
        };
        Position { column: at.column + width, ..*at }
    }

    fn take(&mut self, symbol: char) -> bool {
        let taken = self.peek() == Some(&Token::Symbol(symbol));
        self.at += usize::from(taken);
        taken
    }

    fn expect(&mut self, symbol: char) -> Parsed<()> {
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
            Some(Token::Name(name)) if is_keyword(name) => format!("`{name}`, which rules files cannot use"),
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

fn is_keyword(name: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "and", "break", "continue", "def", "elif", "else", "for", "if", "in", "lambda", "load", "not", "or", "pass",
        "return",
    ];
    KEYWORDS.contains(&name)
}
