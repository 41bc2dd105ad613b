//! Numbers and format strings.

use super::ParseResult;
use crate::rules::starlark::lexer::{Position, SyntaxError};
use crate::rules::starlark::syntax::FormatPiece;

pub(super) fn number(text: &str, at: Position) -> ParseResult<i64> {
    let digits = |prefix: &str| text.strip_prefix(prefix).or_else(|| text.strip_prefix(&prefix.to_uppercase()));
    let number = if let Some(digits) = digits("0x") {
        i64::from_str_radix(digits, 16)
    } else if let Some(digits) = digits("0o") {
        i64::from_str_radix(digits, 8)
    } else if let Some(digits) = digits("0b") {
        i64::from_str_radix(digits, 2)
    } else {
        text.parse()
    };
    let fraction = if text.contains('.') { "; there are no fractions here" } else { "" };
    number.map_err(|_| SyntaxError { message: format!("Parse error: invalid number {text}{fraction}"), at })
}

/// The pieces of a format string; doubled braces are literal braces.
pub(super) fn pieces(text: &str, at: Position) -> ParseResult<Vec<FormatPiece>> {
    let wrong = |what: &str| Err(SyntaxError { message: format!("Parse error: invalid format string: {what}"), at });
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '{' | '}' if rest.next_if_eq(&c).is_some() => plain.push(c),
            '}' => return wrong("a single `}`"),
            '{' => {
                let mut name = String::new();
                loop {
                    match rest.next() {
                        Some('}') => break,
                        Some(c) if c.is_alphanumeric() || c == '_' => name.push(c),
                        Some(_) => return wrong("only names may stand in braces"),
                        None => return wrong("an unfinished `{`"),
                    }
                }
                if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
                    return wrong("only names may stand in braces");
                }
                pieces.extend([FormatPiece::Text(std::mem::take(&mut plain)), FormatPiece::Name(name)]);
            }
            c => plain.push(c),
        }
    }
    pieces.push(FormatPiece::Text(plain));
    Ok(pieces)
}
