//! The tokens of Rust source that paths are made of. Comments, literals and lifetimes are left out.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    Word(&'a str),
    /// `::`
    Separator,
    Mark(char),
}

#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub kind: Kind<'a>,
    /// Counted from one.
    pub line: usize,
}

/// Splits source into tokens.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let (length, kind) = next(rest, first);
        let (taken, left) = rest.split_at(length);
        if let Some(kind) = kind {
            tokens.push(Token { kind, line });
        }
        line += taken.matches('\n').count();
        rest = left;
    }
    tokens
}

/// The length of the first token, and its kind unless it is left out.
fn next(rest: &str, first: char) -> (usize, Option<Kind<'_>>) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), None);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), None);
    }
    if let Some(length) = raw_string(rest) {
        return (length, None);
    }
    match first {
        '"' => (quoted(rest, '"'), None),
        '\'' => (character_or_lifetime(rest), None),
        ':' if rest.starts_with("::") => (2, Some(Kind::Separator)),
        _ if is_word(first) => {
            let length = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
            (length, Some(Kind::Word(&rest[..length])))
        }
        _ if first.is_whitespace() => (first.len_utf8(), None),
        _ => (first.len_utf8(), Some(Kind::Mark(first))),
    }
}

fn is_word(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

/// Block comments nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let here = &rest[at..];
        if here.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length of a raw string, if one begins here.
fn raw_string(rest: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| {
        let after = rest.strip_prefix(prefix).map(|after| after.trim_start_matches('#'));
        after.is_some_and(|after| after.starts_with('"'))
    })?;
    let hashes = rest[prefix.len()..].find('"')?;
    let begin = prefix.len() + hashes + 1;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(rest[begin..].find(&end).map_or(rest.len(), |at| begin + at + end.len()))
}

/// The length of a literal that begins with a quote, with both quotes.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn character_or_lifetime(rest: &str) -> usize {
    let mut after = rest.chars().skip(1);
    match (after.next(), after.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => quoted(rest, '\''),
        _ => 1 + rest[1..].find(|letter| !is_word(letter)).unwrap_or(rest.len() - 1),
    }
}
