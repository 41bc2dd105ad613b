//! Marks inside of a line: emphasis, code, links.

use super::super::style::{Paint, Style, columns, width};

/// A part of a line with one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub text: String,
    pub paint: Option<Paint>,
}

/// The marks that are looked for, the longer ones first.
const EMPHASIS: [(&str, Paint); 6] = [
    ("**", Paint::Bold),
    ("__", Paint::Bold),
    ("~~", Paint::Dim),
    ("*", Paint::Italic),
    ("_", Paint::Italic),
    ("`", Paint::Cyan),
];

/// The parts of a line. With colour the marks are removed.
pub fn spans(style: Style, line: &str) -> Vec<Span> {
    let mut spans = Spans { style, spans: Vec::new(), plain: String::new(), depth: 0 };
    spans.parse(line, None);
    spans.end_plain(None);
    spans.spans
}

struct Spans {
    style: Style,
    spans: Vec<Span>,
    /// Text without marks that is not yet a span.
    plain: String,
    /// How many marks are around.
    depth: usize,
}

/// Marks inside of more than this many others are text.
const MAX_DEPTH: usize = 8;

impl Spans {
    fn parse(&mut self, text: &str, around: Option<Paint>) {
        let mut rest = text;
        self.depth += 1;
        while let Some(c) = rest.chars().next() {
            let before = text[..text.len() - rest.len()].chars().next_back();
            let used = match c {
                _ if self.depth > MAX_DEPTH => None,
                '\\' => self.escaped(rest),
                '`' => self.code(rest, around),
                '[' => self.link(rest, around),
                '!' if rest.starts_with("![") => self.link(&rest[1..], around).map(|used| used + 1),
                '*' | '_' | '~' => self.emphasis(rest, before, around),
                _ => None,
            };
            let used = used.unwrap_or_else(|| {
                self.plain.push(c);
                c.len_utf8()
            });
            rest = &rest[used..];
        }
        self.depth -= 1;
        self.end_plain(around);
    }

    fn end_plain(&mut self, paint: Option<Paint>) {
        let text = std::mem::take(&mut self.plain);
        if !text.is_empty() {
            self.spans.push(Span { text, paint });
        }
    }

    /// A backslash before punctuation.
    fn escaped(&mut self, rest: &str) -> Option<usize> {
        let next = rest[1..].chars().next().filter(char::is_ascii_punctuation)?;
        self.plain.push(next);
        Some(1 + next.len_utf8())
    }

    fn code(&mut self, rest: &str, around: Option<Paint>) -> Option<usize> {
        let length = rest.len() - rest.trim_start_matches('`').len();
        let (marks, after) = rest.split_at(length);
        let mut end = 0;
        loop {
            end += after[end..].find(marks)?;
            let run = after[end..].len() - after[end..].trim_start_matches('`').len();
            if run == length {
                break;
            }
            end += run;
        }
        let used = 2 * length + end;
        self.end_plain(around);
        let text = if self.style.has_colour() { after[..end].trim() } else { &rest[..used] };
        self.spans.push(Span { text: text.to_owned(), paint: Some(Paint::Cyan) });
        Some(used)
    }

    /// `[text](url)` is shown as `text (url)`, so that no text hides where its link goes.
    fn link(&mut self, rest: &str, around: Option<Paint>) -> Option<usize> {
        let (label, after) = rest[1..].split_once("](")?;
        if label.contains(['[', ']']) {
            return None;
        }
        let (target, _) = after.split_once(')')?;
        // A title may follow.
        let (url, title) = target.split_once(' ').unwrap_or((target, ""));
        if !(title.is_empty() || title.starts_with('"') && title.ends_with('"')) {
            return None;
        }
        self.parse(label, around);
        if !url.is_empty() && url != label {
            let shown = if label.is_empty() { url.to_owned() } else { format!(" ({url})") };
            self.spans.push(Span { text: shown, paint: Some(Paint::Dim) });
        }
        Some(1 + label.len() + 2 + target.len() + 1)
    }

    fn emphasis(&mut self, rest: &str, before: Option<char>, around: Option<Paint>) -> Option<usize> {
        let (marks, paint) = EMPHASIS.into_iter().find(|(marks, _)| rest.starts_with(marks))?;
        let after = &rest[marks.len()..];
        let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        // Underscores inside of words are none.
        if after.starts_with(char::is_whitespace) || marks.starts_with('_') && is_word(before) {
            return None;
        }
        let mut from = 0;
        let end = loop {
            let end = from + after[from..].find(marks)?;
            let follows = after[end + marks.len()..].chars().next();
            let closes = end > 0
                && !after[..end].ends_with(char::is_whitespace)
                && !(marks.starts_with('_') && is_word(follows))
                // A single mark is not half of a double one.
                && (marks.len() == 2 || follows != marks.chars().next() && !after[..end].ends_with(marks));
            if closes {
                break end;
            }
            from = end + marks.len();
        };
        self.end_plain(around);
        if self.style.has_colour() {
            self.parse(&after[..end], Some(paint));
        } else {
            self.plain += marks;
            self.parse(&after[..end], around);
            self.plain += marks;
        }
        Some(2 * marks.len() + end)
    }
}

/// Breaks spans into lines of at most `room` columns, between words where possible.
pub fn wrap(style: Style, spans: &[Span], room: Option<usize>) -> Vec<String> {
    let mut lines = Lines { room: room.unwrap_or(usize::MAX), lines: vec![Vec::new()], column: 0 };
    let mut word: Vec<Span> = Vec::new();
    let mut spaces = Vec::new();
    for span in spans {
        for (index, part) in span.text.split(' ').enumerate() {
            if index > 0 {
                lines.add_word(&mut spaces, &mut word);
                spaces.push(Span { text: " ".to_owned(), paint: span.paint });
            }
            if !part.is_empty() {
                word.push(Span { text: part.to_owned(), paint: span.paint });
            }
        }
    }
    lines.add_word(&mut spaces, &mut word);
    lines.lines.iter().map(|line| painted(style, line)).collect()
}

struct Lines {
    room: usize,
    lines: Vec<Vec<Span>>,
    column: usize,
}

impl Lines {
    /// Adds a word after spaces; both are taken.
    fn add_word(&mut self, spaces: &mut Vec<Span>, word: &mut Vec<Span>) {
        if word.is_empty() {
            return;
        }
        let total: usize = word.iter().map(|span| width(&span.text)).sum();
        if self.column > 0 && self.column + spaces.len() + total > self.room {
            self.begin_line();
            spaces.clear();
        }
        for span in spaces.drain(..).chain(word.drain(..)) {
            self.add(&span);
        }
    }

    /// Adds a part of a word, broken if it is longer than a line.
    fn add(&mut self, span: &Span) {
        let mut part = String::new();
        for c in span.text.chars() {
            if self.column + columns(c) > self.room {
                self.push(std::mem::take(&mut part), span.paint);
                self.begin_line();
            }
            part.push(c);
            self.column += columns(c);
        }
        self.push(part, span.paint);
    }

    fn push(&mut self, text: String, paint: Option<Paint>) {
        if let Some(line) = self.lines.last_mut()
            && !text.is_empty()
        {
            match line.last_mut() {
                Some(last) if last.paint == paint => last.text += &text,
                _ => line.push(Span { text, paint }),
            }
        }
    }

    fn begin_line(&mut self) {
        self.lines.push(Vec::new());
        self.column = 0;
    }
}

fn painted(style: Style, line: &[Span]) -> String {
    let paint = |span: &Span| match span.paint {
        Some(paint) => style.paint(paint, &span.text),
        None => span.text.clone(),
    };
    line.iter().map(paint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The spans with their paints, in brackets.
    fn check(line: &str, coloured: &str, plain: &str) {
        let show = |colour| -> String {
            spans(Style::new(None, colour), line)
                .iter()
                .map(|span| match span.paint.filter(|_| colour) {
                    Some(paint) => format!("<{paint:?} {}>", span.text),
                    None => span.text.clone(),
                })
                .collect()
        };
        assert_eq!((show(true), show(false)), (coloured.to_owned(), plain.to_owned()), "{line}");
    }

    #[test]
    fn marks_become_colours_or_stay() {
        check("a **b c** d", "a <Bold b c> d", "a **b c** d");
        check("*a* _b_ __c__ ~~d~~", "<Italic a> <Italic b> <Bold c> <Dim d>", "*a* _b_ __c__ ~~d~~");
        check("`a*b*` ``c`d``", "<Cyan a*b*> <Cyan c`d>", "`a*b*` ``c`d``");
        check("**a `b` c**", "<Bold a ><Cyan b><Bold  c>", "**a `b` c**");
    }

    #[test]
    fn characters_that_are_no_marks_stay() {
        for line in ["snake_case_name", "2 * 3 * 4", "**open", "a ` b", "[a] (b)", "* a*", "a_b _", "**", "****"] {
            check(line, line, line);
        }
        check(r"\*a\* \d", r"*a* \d", r"*a* \d");
    }

    #[test]
    fn links_show_where_they_go() {
        check("[a](http://x \"t\")", "a<Dim  (http://x)>", "a (http://x)");
        check("![pic](x.png)", "pic<Dim  (x.png)>", "pic (x.png)");
        check("[http://x](http://x)", "http://x", "http://x");
    }

    #[test]
    fn words_are_kept_together() {
        let lines = |line: &str, room| wrap(Style::new(None, false), &spans(Style::new(None, false), line), Some(room));
        assert_eq!(lines("one **two** three", 9), ["one", "**two**", "three"]);
        assert_eq!(lines("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(lines("漢字漢字", 5), ["漢字", "漢字"]);
        assert_eq!(lines("", 5), [""]);
    }
}
