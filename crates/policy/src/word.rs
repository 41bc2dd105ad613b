//! A word of a shell script, as far as it is known before a shell runs the script, with the information which
//! characters were quoted.

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    pieces: Vec<WordPiece>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordPiece {
    /// The start of quoted text, which may be empty: a word with quotes is never dropped for being empty.
    Quote,
    /// A quoted character.
    Quoted(char),
    /// A character that was not quoted.
    Bare(char),
    /// The value of a parameter or a substitution: any text. Outside of quotes it may be several words, or none.
    Value { quoted: bool },
}

impl WordPiece {
    fn char(self) -> Option<char> {
        match self {
            Self::Quoted(c) | Self::Bare(c) => Some(c),
            Self::Quote | Self::Value { .. } => None,
        }
    }

    fn is_bare(self, wanted: char) -> bool {
        self == Self::Bare(wanted)
    }
}

impl Word {
    /// The word of an argument list, which no shell reads.
    pub fn literal(text: &str) -> Self {
        Self { pieces: std::iter::once(WordPiece::Quote).chain(text.chars().map(WordPiece::Quoted)).collect() }
    }

    pub(crate) fn push(&mut self, piece: WordPiece) {
        self.pieces.push(piece);
    }

    /// Whether any of it was quoted or escaped.
    pub(crate) fn is_quoted(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(piece, WordPiece::Quote | WordPiece::Quoted(_) | WordPiece::Value { quoted: true }))
    }

    /// Whether it may contain a sequence such as `{a..c}`. In bash a sequence can expand to a backquote, which begins a
    /// substitution.
    pub(crate) fn may_hold_sequence(&self) -> bool {
        let sequence =
            |text: &str| text.split_once('{').is_some_and(|(_, rest)| rest.contains("..") && rest.contains('}'));
        self.pieces.iter().any(|piece| piece.is_bare('{')) && sequence(&self.text())
    }

    /// The word after quote removal. A value that is not known is left out.
    pub fn text(&self) -> String {
        self.pieces.iter().filter_map(|piece| piece.char()).collect()
    }

    /// Whether a shell may replace the word by something other than [`text`](Self::text): it has an unquoted glob,
    /// a brace with a comma or `..`, a tilde where shells look for one (`HEAD~1` has none), the value of a
    /// parameter, or it begins with `=` (as zsh finds programs). A word that does not expand is passed on exactly
    /// as its text.
    pub fn expands(&self) -> bool {
        let equals = matches!(self.pieces[..], [WordPiece::Bare('='), _, ..]);
        let globs = |piece: &WordPiece| matches!(piece, WordPiece::Bare('*' | '?' | '[') | WordPiece::Value { .. });
        equals || self.expands_braces() || self.has_tilde() || self.pieces.iter().any(globs)
    }

    fn expands_braces(&self) -> bool {
        let separated = |pair: &[WordPiece]| pair.contains(&WordPiece::Bare(',')) || pair == [WordPiece::Bare('.'); 2];
        self.pieces.contains(&WordPiece::Bare('{')) && self.pieces.windows(2).any(separated)
    }

    /// Whether it has a tilde that may stand for a folder: at the start, or where a value may begin.
    fn has_tilde(&self) -> bool {
        let after = |pair: &[WordPiece]| {
            matches!(pair, [WordPiece::Bare('=' | ':') | WordPiece::Quoted('=' | ':'), WordPiece::Bare('~')])
        };
        matches!(self.pieces[..], [WordPiece::Bare('~'), ..]) || self.pieces.windows(2).any(after)
    }

    /// Whether it has unquoted globs or a tilde.
    #[cfg(test)]
    pub(crate) fn has_globs(&self) -> bool {
        self.has_tilde() || self.pieces.iter().any(|piece| matches!(piece, WordPiece::Bare('*' | '?' | '[')))
    }

    /// Whether nothing of it is known.
    pub(crate) fn is_unknown(&self) -> bool {
        let mut pieces = self.pieces.iter().filter(|piece| **piece != WordPiece::Quote).peekable();
        pieces.peek().is_some() && pieces.all(|piece| matches!(piece, WordPiece::Value { .. }))
    }

    /// Whether it may expand to several words.
    pub(crate) fn is_plural(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(piece, WordPiece::Bare('*' | '?' | '[') | WordPiece::Value { quoted: false }))
    }

    /// Whether it may expand to no word.
    pub(crate) fn may_vanish(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece, WordPiece::Value { quoted: false }))
    }

    /// The part after its last literal slash.
    pub(crate) fn base_name(&self) -> Self {
        let start = self.pieces.iter().rposition(|piece| piece.char() == Some('/')).map_or(0, |at| at + 1);
        Self { pieces: self.pieces[start..].to_vec() }
    }

    /// Whether the word may expand to this text. May return true wrongly, never false: values match any text, and so do
    /// bracket expressions, which stay as they are when they match no file.
    pub(crate) fn can_be(&self, text: &str) -> bool {
        if !self
            .pieces
            .iter()
            .any(|piece| matches!(piece, WordPiece::Value { .. } | WordPiece::Bare('*' | '?' | '[' | '~')))
        {
            return self.pieces.iter().filter_map(|piece| piece.char()).eq(text.chars());
        }
        // Globs that match no file stay as they are.
        if !self.pieces.iter().any(|piece| matches!(piece, WordPiece::Value { .. })) && self.text() == text {
            return true;
        }
        let text: Vec<char> = text.chars().collect();
        // reached[n]: the pieces so far may stand for the first n characters.
        let mut reached = vec![false; text.len() + 1];
        reached[0] = true;
        let mut pieces = &self.pieces[..];
        while let [first, rest @ ..] = pieces {
            pieces = rest;
            let one = |reached: &[bool], fits: &dyn Fn(char) -> bool| {
                let mut next = vec![false; reached.len()];
                for at in 0..text.len() {
                    next[at + 1] = reached[at] && fits(text[at]);
                }
                next
            };
            let many = |reached: &[bool], fits: &dyn Fn(char) -> bool| {
                let mut next = reached.to_vec();
                for at in 0..text.len() {
                    next[at + 1] |= next[at] && fits(text[at]);
                }
                next
            };
            reached = match *first {
                WordPiece::Quote => reached,
                WordPiece::Value { .. } => many(&reached, &|_| true),
                WordPiece::Bare('~') => {
                    // The name after the tilde is that of a user.
                    let name = rest.iter().position(|piece| piece.char() == Some('/')).unwrap_or(rest.len());
                    pieces = &rest[name..];
                    many(&reached, &|_| true)
                }
                WordPiece::Bare('*') => many(&reached, &|c| c != '/'),
                WordPiece::Bare('?') => one(&reached, &|c| c != '/'),
                WordPiece::Bare('[') => match closing_bracket(rest) {
                    Some(end) => {
                        pieces = &rest[end + 1..];
                        many(&reached, &|_| true)
                    }
                    None => one(&reached, &|c| c == '['),
                },
                WordPiece::Quoted(wanted) | WordPiece::Bare(wanted) => one(&reached, &|c| c == wanted),
            };
        }
        reached[text.len()]
    }

    /// The words that its braces expand to in bash and zsh; `None` where that is not known exactly.
    pub fn braces(&self) -> Option<Vec<Self>> {
        // A parameter name before a brace would continue with the text of the brace.
        if self.pieces.iter().any(|piece| matches!(piece, WordPiece::Value { .. })) && self.expands_braces() {
            return None;
        }
        let mut left = MAX_BRACES;
        let words = expand(&self.pieces, &mut left)?;
        // A word that is empty and has no quotes is dropped.
        Some(words.into_iter().filter(|pieces| !pieces.is_empty()).map(|pieces| Self { pieces }).collect())
    }
}

/// The most words, and nested braces, of one expansion.
const MAX_BRACES: usize = 256;

/// The end of a bracket expression whose first bracket precedes `pieces`.
fn closing_bracket(pieces: &[WordPiece]) -> Option<usize> {
    // A bracket that comes first, or first after a negation, is one of the characters.
    let negated = matches!(pieces, [WordPiece::Bare('!' | '^'), ..]) as usize;
    let first = negated + matches!(pieces.get(negated), Some(WordPiece::Bare(']'))) as usize;
    pieces.iter().skip(first).position(|piece| piece.is_bare(']')).map(|at| at + first)
}

/// All words that the braces of a word expand to, in order.
fn expand(pieces: &[WordPiece], left: &mut usize) -> Option<Vec<Vec<WordPiece>>> {
    *left = left.checked_sub(1)?;
    let opening = pieces.iter().enumerate().filter(|(_, piece)| piece.is_bare('{')).map(|(at, _)| at);
    // A pair of braces at the start of a word is left alone, and after a blank that was quoted in some way.
    let alone = |open: usize| pieces.get(open + 1).is_some_and(|piece| piece.is_bare('}'));
    let after_blank = |open: usize| open > 0 && pieces[open - 1].char().is_some_and(char::is_whitespace);
    let mut opening = opening.filter(|open| !(*open == 0 && alone(*open)));
    let found = opening.find_map(|open| Some((open, closing_brace(&pieces[open + 1..])? + open + 1)));
    if found.is_some_and(|(open, _)| alone(open) && after_blank(open)) {
        return None;
    }
    let Some((open, close)) = found else { return Some(vec![pieces.to_vec()]) };
    let inside = &pieces[open + 1..close];
    let middle = if inside.iter().any(|piece| piece.is_bare(',')) {
        let mut words = Vec::new();
        for alternative in alternatives(inside) {
            words.extend(expand(alternative, left)?);
        }
        words
    } else {
        sequence(inside)?
    };
    let after = expand(&pieces[close + 1..], left)?;
    let mut words = Vec::new();
    for middle in &middle {
        for after in &after {
            *left = left.checked_sub(1)?;
            words.push([&pieces[..open], middle, after].concat());
        }
    }
    Some(words)
}

/// The end of a brace whose first character precedes `pieces`, if it contains a comma or `..`.
fn closing_brace(pieces: &[WordPiece]) -> Option<usize> {
    let (mut level, mut separated) = (0, false);
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            WordPiece::Bare('}') if level == 0 && separated => return Some(at),
            WordPiece::Bare('{') => level += 1,
            WordPiece::Bare('}') if level > 0 => level -= 1,
            WordPiece::Bare(',') if level == 0 => separated = true,
            WordPiece::Bare('.') if level == 0 => {
                let next = |n: usize| pieces.get(at + n).copied();
                separated |= next(1) == Some(WordPiece::Bare('.')) && next(2) != Some(WordPiece::Bare('}'));
            }
            _ => {}
        }
    }
    None
}

/// The parts between the commas that are in no inner brace.
fn alternatives(pieces: &[WordPiece]) -> Vec<&[WordPiece]> {
    let mut level = 0;
    pieces
        .split(|piece| {
            match piece {
                WordPiece::Bare('{') => level += 1,
                WordPiece::Bare('}') if level > 0 => level -= 1,
                _ => {}
            }
            level == 0 && piece.is_bare(',')
        })
        .collect()
}

/// Expands `1..3` or `a..c`; `None` for other sequences.
fn sequence(pieces: &[WordPiece]) -> Option<Vec<Vec<WordPiece>>> {
    let text: Option<String> =
        pieces.iter().map(|piece| if let WordPiece::Bare(c) = piece { Some(*c) } else { None }).collect();
    let text = text?;
    let (from, to) = text.split_once("..")?;
    let values: Vec<String> = match (letter(from), letter(to)) {
        (Some(from), Some(to)) if from.is_ascii_lowercase() == to.is_ascii_lowercase() => {
            between(i64::from(from as u32), i64::from(to as u32))?
                .into_iter()
                .filter_map(|n| char::from_u32(u32::try_from(n).ok()?))
                .map(String::from)
                .collect()
        }
        _ => between(number(from)?, number(to)?)?.into_iter().map(|n| n.to_string()).collect(),
    };
    Some(values.iter().map(|value| value.chars().map(WordPiece::Quoted).collect()).collect())
}

fn letter(text: &str) -> Option<char> {
    let mut chars = text.chars();
    chars.next().filter(|c| c.is_ascii_alphabetic() && chars.next().is_none())
}

/// A number as it is printed: without a plus or zeros in front.
fn number(text: &str) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn between(from: i64, to: i64) -> Option<Vec<i64>> {
    if from.abs_diff(to) >= MAX_BRACES as u64 {
        return None;
    }
    Some(if from <= to { (from..=to).collect() } else { (to..=from).rev().collect() })
}
