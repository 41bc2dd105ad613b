//! Splits a prompt into clauses. Text in backticks, double quotes or fenced blocks is never split.

/// Words that are skipped at the start of a clause. Some clients prefix the role.
const FILLERS: &[&str] = &["please", "now", "first", "finally", "next", "and", "then", "-", "*", "user:", "human:"];
/// Words that make a call parallel to the one before it.
const ALSO: &[&str] = &["also", "at the same time"];

/// Separators of clauses, outside of quotes.
const ENDS: &[&str] = &["\n", "; ", ";", ". ", "! ", ", then ", " and then ", " then "];

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clause {
    /// Trimmed, without leading fillers.
    pub text: String,
    /// The separator before the clause.
    pub before: String,
    /// Parallel to the clause before it.
    pub also: bool,
    /// The fenced block that follows.
    block: Option<String>,
}

pub(super) fn clauses(prompt: &str) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = Vec::new();
    let (mut rest, mut before) = (prompt, "");
    while !rest.is_empty() {
        if let Some((block, after)) = fenced(rest) {
            if let Some(last) = clauses.last_mut() {
                last.block = Some(block.into());
            }
            (rest, before) = (after, "\n");
            continue;
        }
        let (text, end, after) = next(rest);
        if let Some(clause) = Clause::new(text, before) {
            clauses.push(clause);
        }
        (rest, before) = (after, end);
    }
    clauses
}

/// Returns the content of a fenced block at the start of `text`, and the rest.
fn fenced(text: &str) -> Option<(&str, &str)> {
    let (_, body) = text.strip_prefix("```")?.split_once('\n')?;
    let end = body.find("\n```").map(|at| (at, at + 4)).or(body.starts_with("```").then_some((0, 3)));
    let (end, after) = end.unwrap_or((body.len(), body.len()));
    let after = &body[after..];
    Some((&body[..end], after.split_once('\n').map_or("", |(_, rest)| rest)))
}

/// Returns the next clause, its separator, and the rest.
fn next(text: &str) -> (&str, &str, &str) {
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(end) = ENDS.iter().find(|end| rest.starts_with(**end)) {
            return (&text[..at], end, &rest[end.len()..]);
        }
        at += quote(rest).or(braces(rest)).unwrap_or_else(|| rest.chars().next().map_or(1, char::len_utf8));
    }
    (text, "", "")
}

/// Returns the length of a quoted text at the start of `text`.
fn quote(text: &str) -> Option<usize> {
    let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '"'))?;
    let inner = &text[1..];
    let end = match mark {
        '"' => {
            let mut escaped = false;
            inner
                .char_indices()
                .find(|(_, char)| {
                    let ends = *char == '"' && !escaped;
                    escaped = *char == '\\' && !escaped;
                    ends
                })?
                .0
        }
        _ => inner.find(mark)?,
    };
    Some(end + 2)
}

/// Returns the length of a JSON object at the start of `text`.
fn braces(text: &str) -> Option<usize> {
    if !text.starts_with('{') {
        return None;
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    stream.next()?.ok()?;
    Some(stream.byte_offset())
}

impl Clause {
    /// Returns `None` when only fillers are left.
    fn new(text: &str, before: &str) -> Option<Self> {
        let (mut text, mut also) = (numbered(text.trim()), false);
        loop {
            let start = |words: &&&str| {
                text.get(..words.len()).is_some_and(|start| start.eq_ignore_ascii_case(words))
                    && text[words.len()..].starts_with([' ', ','])
            };
            if let Some(words) = ALSO.iter().find(start) {
                (text, also) = (&text[words.len()..], true);
            } else if let Some(words) = FILLERS.iter().find(start) {
                text = &text[words.len()..];
            } else {
                break;
            }
            text = text.trim_start_matches([' ', ',']);
        }
        (!text.is_empty()).then(|| Self { text: text.into(), before: before.into(), also, block: None })
    }

    /// Returns the argument of a step: the fenced block, the quoted text, or the words as they are.
    pub fn argument(&self, text: &str) -> String {
        let text = text.trim().trim_end_matches([',', ':']).trim();
        if let Some(block) = &self.block
            && (text.is_empty() || self.text.ends_with(':') || self.text.ends_with(text))
        {
            return block.clone();
        }
        match quote(text) {
            Some(end) if text.starts_with('"') => {
                serde_json::from_str(&text[..end]).unwrap_or_else(|_| text[1..end - 1].into())
            }
            Some(end) => text[1..end - 1].into(),
            None => text.into(),
        }
    }

    /// As [`Clause::argument`], without a trailing full stop.
    pub fn word(&self, text: &str) -> String {
        let text = text.trim();
        let stop = text.strip_suffix('.').filter(|rest| rest.ends_with(|char: char| char.is_alphanumeric()));
        self.argument(stop.unwrap_or(text))
    }

    /// Returns two arguments that one of the separators divides; a fenced block is the second.
    pub fn pair(&self, text: &str, between: &[&str]) -> Option<(String, String)> {
        let bare = Self { block: None, ..self.clone() };
        for words in between {
            if let Some((first, second)) = self.split(text, words) {
                let first = first.trim();
                return Some((bare.word(first.strip_suffix(" with").unwrap_or(first)), self.argument(second)));
            }
        }
        Some((bare.word(text), self.block.clone()?))
    }

    /// Splits `text` at `words`, outside of quotes.
    pub fn split<'a>(&self, text: &'a str, words: &str) -> Option<(&'a str, &'a str)> {
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            if rest.get(..words.len()).is_some_and(|start| start.eq_ignore_ascii_case(words)) {
                return Some((&text[..at], &rest[words.len()..]));
            }
            at += quote(rest).unwrap_or_else(|| rest.chars().next().map_or(1, char::len_utf8));
        }
        None
    }

    /// Returns the text behind a leading quoted text.
    pub fn outside<'a>(&self, text: &'a str) -> &'a str {
        text[quote(text).unwrap_or(0)..].trim_end_matches('.').trim_end()
    }

    /// Appends the fenced block to a part of the clause.
    pub fn whole(&self, text: &str) -> String {
        match &self.block {
            Some(block) => format!("{text}\n```\n{block}\n```"),
            None => text.into(),
        }
    }
}

/// Strips the number of a list item.
fn numbered(text: &str) -> &str {
    let digits = text.len() - text.trim_start_matches(|char: char| char.is_ascii_digit()).len();
    match text[digits..].strip_prefix(['.', ')']) {
        Some(rest) if digits > 0 => rest.trim_start(),
        _ => text,
    }
}
