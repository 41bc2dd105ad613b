//! The strict reading of a script: every command that it may run, for rules that forbid or prompt, and for the
//! detection of dangerous commands. Every script can be read, with unknown words where necessary, so this reading never
//! allows a script. It does not find commands whose names a script computes; those are bounded by the sandbox only.

use crate::script::{RESERVED, is_assignment};
use crate::word::{Word, WordPiece};

/// The deepest nesting of scripts that is read.
const MAX_DEPTH: usize = 32;

/// The commands that an argument list may run: itself, the one that it wraps, and those of the script that it passes to
/// a shell, whatever the path of the shell.
pub(crate) fn suspects(argv: &[String]) -> Vec<Vec<Word>> {
    suspects_of(&argv.iter().map(|word| Word::literal(word)).collect::<Vec<_>>())
}

/// The commands that these words of a script may run.
pub(crate) fn suspects_of(words: &[Word]) -> Vec<Vec<Word>> {
    let mut found = Vec::new();
    add(words.to_vec(), 0, &mut found);
    found
}

/// Adds a command in every reading of shells.
fn add(words: Vec<Word>, depth: usize, found: &mut Vec<Vec<Word>>) {
    if words.is_empty() || depth > MAX_DEPTH {
        return;
    }
    if let Some(wrapped) = wrapped(&words) {
        add(wrapped.to_vec(), depth + 1, found);
    }
    if let Some(script) = inner_script(&words) {
        read(&script, depth + 1, found);
    }
    let expanded: Vec<Word> = words.iter().flat_map(expanded).collect();
    if expanded != words {
        found.push(expanded);
    }
    found.push(words);
}

/// The words that the braces of a word expand to; an unknown word where that is not known.
fn expanded(word: &Word) -> Vec<Word> {
    word.braces().unwrap_or_else(|| {
        let mut unknown = Word::default();
        unknown.push(WordPiece::Value { quoted: false });
        vec![unknown]
    })
}

/// Programs, and builtins of shells, that run the command in their arguments.
pub(crate) const WRAPPERS: &[&str] = &[
    "sudo",
    "doas",
    "env",
    "nohup",
    "command",
    "exec",
    "builtin",
    "nice",
    "ionice",
    "setsid",
    "stdbuf",
    "time",
    "timeout",
    "xargs",
    "busybox",
    "noglob",
    "nocorrect",
    "-",
];

const SHELLS: &[&str] = &["ash", "bash", "dash", "ksh", "sh", "zsh"];

fn is_any(word: &Word, names: &[&str]) -> bool {
    let base = word.base_name();
    !word.is_unknown() && names.iter().any(|name| base.can_be(name))
}

/// The command in the arguments of another, or after a word that may expand to nothing.
fn wrapped(words: &[Word]) -> Option<&[Word]> {
    let (program, rest) = words.split_first()?;
    if program.may_vanish() {
        return Some(rest);
    }
    let own = |word: &&Word| {
        let text = word.text();
        text.starts_with('-') || text.contains('=') || text.starts_with(|c: char| c.is_ascii_digit()) || text == "{}"
    };
    is_any(program, WRAPPERS).then(|| &rest[rest.iter().take_while(own).count()..])
}

/// The script in the arguments of a shell or of `eval`.
fn inner_script(words: &[Word]) -> Option<String> {
    let (program, rest) = words.split_first()?;
    if is_any(program, &["eval"]) {
        return Some(rest.iter().map(Word::text).collect::<Vec<_>>().join(" "));
    }
    if !is_any(program, SHELLS) {
        return None;
    }
    let flag = rest.iter().position(|word| {
        let text = word.text();
        text.starts_with('-') && !text.starts_with("--") && text.contains('c')
    });
    Some(rest.get(flag? + 1)?.text())
}

/// Adds the commands of a script.
fn read(script: &str, depth: usize, found: &mut Vec<Vec<Word>>) {
    if depth <= MAX_DEPTH {
        SuspectReader { rest: script, depth, found, words: Vec::new(), word: None, target: None, bodies: Vec::new() }
            .read();
    }
}

struct SuspectReader<'a, 'b> {
    rest: &'a str,
    depth: usize,
    found: &'b mut Vec<Vec<Word>>,
    /// The command so far.
    words: Vec<Word>,
    /// The word so far.
    word: Option<Word>,
    /// The next word belongs to a redirection.
    target: Option<RedirectionTarget>,
    /// The here-documents that begin with the next line.
    bodies: Vec<HeredocBody>,
}

#[derive(Clone, Copy)]
enum RedirectionTarget {
    File,
    Delimiter { tabs: bool },
}

struct HeredocBody {
    delimiter: Word,
    tabs: bool,
    /// Whether it is the input of a shell.
    script: bool,
}

impl SuspectReader<'_, '_> {
    fn read(mut self) {
        while let Some(c) = self.next() {
            match c {
                ' ' | '\t' => self.end_word(),
                '\n' => {
                    self.end_command();
                    self.skip_bodies();
                }
                ';' | '(' | ')' | '|' => self.end_command(),
                '&' if self.rest.starts_with('>') => self.end_word(),
                '&' => self.end_command(),
                '#' if self.word.is_none() => {
                    self.rest = &self.rest[self.rest.find('\n').unwrap_or(self.rest.len())..];
                }
                '<' | '>' if self.rest.starts_with('(') => {
                    self.rest = &self.rest[1..];
                    let inside = self.until_closed(')');
                    self.substitution(&inside, true);
                }
                '<' | '>' => self.redirection(c),
                '\'' => {
                    let end = self.rest.find('\'').unwrap_or(self.rest.len());
                    let (inside, rest) = self.rest.split_at(end);
                    self.rest = rest.strip_prefix('\'').unwrap_or(rest);
                    self.quoted(inside);
                }
                '"' => self.double_quoted(),
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(escaped) => self.push(WordPiece::Quoted(escaped)),
                },
                '$' => self.dollar(false),
                '`' => self.backquoted(false),
                other => self.push(WordPiece::Bare(other)),
            }
        }
        self.end_command();
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn push(&mut self, piece: WordPiece) {
        self.word.get_or_insert_default().push(piece);
    }

    fn quoted(&mut self, text: &str) {
        self.push(WordPiece::Quote);
        text.chars().for_each(|c| self.push(WordPiece::Quoted(c)));
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match self.target.take() {
            Some(RedirectionTarget::File) => {}
            Some(RedirectionTarget::Delimiter { tabs }) => {
                self.bodies.push(HeredocBody { delimiter: word, tabs, script: false })
            }
            None => {
                let text = word.text();
                let skipped = self.words.is_empty()
                    && !word.is_quoted()
                    && (is_assignment(&text) || matches!(text.as_str(), "{" | "}") || is_keyword(&text));
                if !skipped {
                    self.words.push(word);
                }
            }
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.target = None;
        let words = std::mem::take(&mut self.words);
        if words.first().is_some_and(|program| is_any(program, SHELLS)) {
            self.bodies.iter_mut().for_each(|body| body.script = true);
        }
        add(words, self.depth, self.found);
    }

    fn redirection(&mut self, first: char) {
        // A number in front is the descriptor, as is a name in braces.
        let numbered = self.word.as_ref().is_some_and(|word| {
            let text = word.text();
            !word.is_quoted()
                && (text.chars().all(|c| c.is_ascii_digit()) || text.starts_with('{') && text.ends_with('}'))
        });
        if numbered {
            self.word = None;
        }
        self.end_word();
        let document = first == '<' && self.rest.starts_with('<') && !self.rest.starts_with("<<");
        let signs = self.rest.len() - self.rest.trim_start_matches(['<', '>', '&', '|']).len();
        self.rest = &self.rest[signs..];
        self.target = Some(if document {
            let tabs = self.rest.starts_with('-');
            self.rest = self.rest.strip_prefix('-').unwrap_or(self.rest);
            RedirectionTarget::Delimiter { tabs }
        } else {
            RedirectionTarget::File
        });
    }

    /// Skips the here-documents that were begun, but for what is substituted in them.
    fn skip_bodies(&mut self) {
        for HeredocBody { delimiter, tabs, script } in std::mem::take(&mut self.bodies) {
            let end = delimiter.text();
            let mut body = String::new();
            while !self.rest.is_empty() {
                let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
                self.rest = rest;
                let line = if tabs { line.trim_start_matches('\t') } else { line };
                if line == end {
                    break;
                }
                body += line;
                body.push('\n');
            }
            if script {
                read(&body, self.depth + 1, self.found);
            } else if !delimiter.is_quoted() {
                let inside = SuspectReader {
                    rest: &body,
                    depth: self.depth + 1,
                    found: self.found,
                    words: Vec::new(),
                    word: None,
                    target: None,
                    bodies: Vec::new(),
                };
                inside.read_text();
            }
        }
    }

    /// Reads text in which only substitutions have a meaning.
    fn read_text(mut self) {
        while let Some(c) = self.next() {
            match c {
                '\\' => drop(self.next()),
                '$' => self.dollar(true),
                '`' => self.backquoted(true),
                _ => {}
            }
        }
    }

    fn double_quoted(&mut self) {
        self.push(WordPiece::Quote);
        while let Some(c) = self.next() {
            match c {
                '"' => return,
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => self.push(WordPiece::Quoted(escaped)),
                    Some(other) => {
                        self.push(WordPiece::Quoted('\\'));
                        self.push(WordPiece::Quoted(other));
                    }
                },
                '$' => self.dollar(true),
                '`' => self.backquoted(true),
                other => self.push(WordPiece::Quoted(other)),
            }
        }
    }

    fn dollar(&mut self, quoted: bool) {
        let mut chars = self.rest.chars();
        match chars.next() {
            Some('\'') if !quoted => {
                self.rest = chars.as_str();
                self.ansi_quoted();
            }
            Some('"') if !quoted => {
                self.rest = chars.as_str();
                self.double_quoted();
            }
            Some('(') => {
                self.rest = chars.as_str();
                let inside = self.until_closed(')');
                self.substitution(&inside, quoted);
            }
            Some('{') => {
                self.rest = chars.as_str();
                let inside = self.until_closed('}');
                // Its default value may contain substitutions.
                self.substitution(&inside, quoted && !inside.contains('@'));
            }
            Some('[') => {
                self.rest = chars.as_str();
                let inside = self.until_closed(']');
                self.substitution(&inside, quoted);
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
                self.push(WordPiece::Value { quoted });
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.rest = chars.as_str();
                self.push(WordPiece::Value { quoted: quoted && c != '@' });
            }
            _ => self.push(WordPiece::Quoted('$')),
        }
    }

    /// A script whose output becomes a part of the word.
    fn substitution(&mut self, script: &str, quoted: bool) {
        read(script, self.depth + 1, self.found);
        self.push(WordPiece::Value { quoted });
    }

    fn backquoted(&mut self, quoted: bool) {
        let mut script = String::new();
        while let Some(c) = self.next() {
            match c {
                '`' => break,
                '\\' => match self.next() {
                    Some(escaped @ ('`' | '\\' | '$')) => script.push(escaped),
                    Some(other) => script.extend(['\\', other]),
                    None => {}
                },
                other => script.push(other),
            }
        }
        self.substitution(&script, quoted);
    }

    /// The text up to the closing character, with quotes and inner substitutions skipped.
    fn until_closed(&mut self, close: char) -> String {
        let mut closing = vec![close];
        let (mut quote, mut escaped, mut before) = (None, false, '\0');
        let mut end = self.rest.len();
        for (at, c) in self.rest.char_indices() {
            let dollar = std::mem::replace(&mut before, c) == '$';
            if std::mem::take(&mut escaped) {
                continue;
            }
            match (c, quote) {
                ('\\', None | Some('"')) => escaped = true,
                ('\'' | '"', None) => quote = Some(c),
                (c, Some(by)) if c == by => quote = None,
                (_, Some('\'')) => {}
                ('(', _) if dollar || closing.last() == Some(&')') => closing.push(')'),
                ('{', _) if dollar => closing.push('}'),
                (c, _) if closing.last() == Some(&c) => {
                    closing.pop();
                    if closing.is_empty() {
                        end = at;
                        break;
                    }
                }
                _ => {}
            }
        }
        let (inside, rest) = self.rest.split_at(end);
        self.rest = rest.strip_prefix(close).unwrap_or(rest);
        inside.to_owned()
    }

    /// `$'…'`, with the escapes of C.
    fn ansi_quoted(&mut self) {
        self.push(WordPiece::Quote);
        while let Some(c) = self.next() {
            let c = match c {
                '\'' => return,
                '\\' => match self.next() {
                    Some('a') => '\x07',
                    Some('b') => '\x08',
                    Some('e' | 'E') => '\x1b',
                    Some('f') => '\x0c',
                    Some('n') => '\n',
                    Some('r') => '\r',
                    Some('t') => '\t',
                    Some('v') => '\x0b',
                    Some('x') => self.number(None, 16, 2),
                    Some('u') => self.number(None, 16, 4),
                    Some('U') => self.number(None, 16, 8),
                    Some(c @ '0'..='7') => self.number(c.to_digit(8), 8, 2),
                    Some('c') => self.next().map_or('\0', |c| char::from((c as u32 & 0x1f) as u8)),
                    Some(other) => other,
                    None => return,
                },
                other => other,
            };
            self.push(WordPiece::Quoted(c));
        }
    }

    /// The character of a number of so many digits at most.
    fn number(&mut self, first: Option<u32>, radix: u32, digits: usize) -> char {
        let mut number = first.unwrap_or(0);
        for _ in 0..digits {
            let Some(digit) = self.rest.chars().next().and_then(|c| c.to_digit(radix)) else { break };
            self.rest = &self.rest[1..];
            number = number.saturating_mul(radix).saturating_add(digit);
        }
        char::from_u32(number).unwrap_or('\u{fffd}')
    }
}

/// Whether a word is a keyword after which a command begins.
fn is_keyword(text: &str) -> bool {
    RESERVED.contains(&text)
        && !matches!(
            text,
            "[" | "alias"
                | "eval"
                | "declare"
                | "export"
                | "float"
                | "integer"
                | "let"
                | "local"
                | "readonly"
                | "typeset"
                | "unset"
                | "unsetenv"
                | "-"
                | "nocorrect"
                | "noglob"
        )
}
