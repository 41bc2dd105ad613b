//! The tokens of a rules file. Lines and their indentation count, as in Starlark, except inside brackets.

/// A line and column, both from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub message: String,
    pub at: Position,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Name(String),
    /// A string, and whether names in braces stand for values.
    Text {
        text: String,
        formatted: bool,
    },
    Number(String),
    Symbol(&'static str),
    /// The end of a statement.
    Line,
    Indent,
    Dedent,
}

pub(super) struct TokenStream {
    pub tokens: Vec<(Token, Position)>,
    pub end: Position,
}

pub(super) fn lex(source: &str) -> Result<TokenStream, SyntaxError> {
    let mut lexer =
        Lexer { rest: source, at: Position { line: 1, column: 1 }, tokens: Vec::new(), depth: 0, indents: vec![0] };
    lexer.run()?;
    Ok(TokenStream { tokens: lexer.tokens, end: lexer.at })
}

/// The symbols, longer ones first.
const SYMBOLS: &[&str] = &[
    "...", "//=", "<<=", ">>=", "**", "//", "<<", ">>", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "|=",
    "&=", "^=", "->", "(", ")", "[", "]", "{", "}", "=", "+", "-", "*", "/", "%", "<", ">", "|", "&", "^", "~", ",",
    ":", ";", ".", "@",
];

struct Lexer<'a> {
    rest: &'a str,
    at: Position,
    tokens: Vec<(Token, Position)>,
    /// Open brackets.
    depth: usize,
    indents: Vec<usize>,
}

impl Lexer<'_> {
    fn run(&mut self) -> Result<(), SyntaxError> {
        self.indentation()?;
        while let Some(c) = self.peek() {
            let at = self.at;
            match c {
                '\n' => {
                    self.next();
                    if self.depth == 0 {
                        self.push_line(at);
                        self.indentation()?;
                    }
                }
                '\\' if self.rest.starts_with("\\\n") => {
                    self.next();
                    self.next();
                }
                '#' => self.skip_comment(),
                c if c.is_whitespace() => {
                    self.next();
                }
                '"' | '\'' => self.string("", at)?,
                c if c.is_ascii_digit() => {
                    let text = self.take_while(|c| c.is_ascii_alphanumeric() || c == '.');
                    self.tokens.push((Token::Number(text), at));
                }
                c if c.is_alphabetic() || c == '_' => {
                    let name = self.take_while(|c| c.is_alphanumeric() || c == '_');
                    if matches!(self.peek(), Some('"' | '\'')) && ["r", "f", "fr", "rf"].contains(&name.as_str()) {
                        self.string(&name, at)?;
                    } else {
                        self.tokens.push((Token::Name(name), at));
                    }
                }
                _ => self.symbol(at)?,
            }
        }
        self.push_line(self.at);
        for _ in 1..self.indents.len() {
            self.tokens.push((Token::Dedent, self.at));
        }
        Ok(())
    }

    fn symbol(&mut self, at: Position) -> Result<(), SyntaxError> {
        let Some(symbol) = SYMBOLS.iter().find(|symbol| self.rest.starts_with(**symbol)) else {
            return Err(SyntaxError { message: "Parse error: invalid input".into(), at });
        };
        for _ in symbol.chars() {
            self.next();
        }
        match *symbol {
            "(" | "[" | "{" => self.depth += 1,
            ")" | "]" | "}" => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.tokens.push((Token::Symbol(symbol), at));
        Ok(())
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        self.at = match c {
            '\n' => Position { line: self.at.line + 1, column: 1 },
            _ => Position { column: self.at.column + 1, ..self.at },
        };
        Some(c)
    }

    fn take_while(&mut self, mut wanted: impl FnMut(char) -> bool) -> String {
        let mut text = String::new();
        while let Some(c) = self.peek().filter(|c| wanted(*c)) {
            text.push(c);
            self.next();
        }
        text
    }

    fn skip_comment(&mut self) {
        self.take_while(|c| c != '\n');
    }

    /// Empty statements do not count.
    fn push_line(&mut self, at: Position) {
        if !matches!(self.tokens.last(), None | Some((Token::Line | Token::Indent | Token::Dedent, _))) {
            self.tokens.push((Token::Line, at));
        }
    }

    /// At the start of a line: how far it is indented, unless it is blank.
    fn indentation(&mut self) -> Result<(), SyntaxError> {
        loop {
            let mut width = 0;
            while let Some(c) = self.peek().filter(|c| matches!(c, ' ' | '\t' | '\r')) {
                width += if c == '\t' { 8 } else { 1 };
                self.next();
            }
            match self.peek() {
                None => return Ok(()),
                Some('\n') => {
                    self.next();
                }
                Some('#') => self.skip_comment(),
                Some(_) => return self.indent(width),
            }
        }
    }

    fn indent(&mut self, width: usize) -> Result<(), SyntaxError> {
        let current = self.indents.last().copied().unwrap_or_default();
        if width > current {
            self.indents.push(width);
            self.tokens.push((Token::Indent, self.at));
        }
        while self.indents.last().is_some_and(|last| *last > width) {
            self.indents.pop();
            self.tokens.push((Token::Dedent, self.at));
        }
        if self.indents.last().is_some_and(|last| *last != width) {
            return Err(SyntaxError { message: "Parse error: incorrect indentation".into(), at: self.at });
        }
        Ok(())
    }

    fn string(&mut self, prefix: &str, start: Position) -> Result<(), SyntaxError> {
        let raw = prefix.contains('r');
        let unfinished = || SyntaxError { message: "Parse error: unfinished string literal".into(), at: start };
        let quote = self.next().ok_or_else(unfinished)?;
        let two_more: String = [quote; 2].iter().collect();
        let long = self.rest.starts_with(&two_more);
        if long {
            self.next();
            self.next();
        }
        let mut text = String::new();
        loop {
            let at = self.at;
            match self.next().ok_or_else(unfinished)? {
                c if c == quote && !long => break,
                c if c == quote && self.rest.starts_with(&two_more) => {
                    self.next();
                    self.next();
                    break;
                }
                '\n' if !long => return Err(unfinished()),
                '\\' if raw => text.extend(['\\', self.next().ok_or_else(unfinished)?]),
                '\\' => {
                    let c = self.next().ok_or_else(unfinished)?;
                    let message = "Parse error: invalid string escape sequence".into();
                    text.extend(self.escape(c).ok_or(SyntaxError { message, at })?);
                }
                c => text.push(c),
            }
        }
        self.tokens.push((Token::Text { text, formatted: prefix.contains('f') }, start));
        Ok(())
    }

    /// The character of an escape; `Some(None)` for an escaped line end.
    fn escape(&mut self, c: char) -> Option<Option<char>> {
        let mut code = |digits: u32| {
            let mut value = 0;
            for _ in 0..digits {
                value = value * 16 + self.next()?.to_digit(16)?;
            }
            char::from_u32(value).map(Some)
        };
        match c {
            'n' => Some(Some('\n')),
            't' => Some(Some('\t')),
            'r' => Some(Some('\r')),
            '0' => Some(Some('\0')),
            '\n' => Some(None),
            'x' => code(2),
            'u' => code(4),
            'U' => code(8),
            '\\' | '\'' | '"' => Some(Some(c)),
            _ => None,
        }
    }
}
