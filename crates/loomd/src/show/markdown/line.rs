//! What a line of Markdown is, by itself.

#[derive(Debug, PartialEq, Eq)]
pub enum LineKind<'a> {
    Blank,
    Fence(Fence),
    Heading {
        level: usize,
        text: &'a str,
    },
    /// Under a paragraph it makes a heading of it.
    Underline,
    Rule,
    Item {
        indent: usize,
        mark: String,
        text: &'a str,
    },
    Quote(&'a str),
    TableRow(&'a str),
    IndentedCode(&'a str),
    Text,
}

/// The beginning of a code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    pub language: String,
}

/// Deeper lists are shown at this depth.
const MAX_INDENT: usize = 12;

const MAX_HEADING: usize = 6;

/// The number of spaces at the beginning, within a bound.
pub fn indent(line: &str) -> usize {
    (line.len() - line.trim_start_matches(' ').len()).min(MAX_INDENT)
}

pub fn classify(line: &str) -> LineKind<'_> {
    let trimmed = line.trim();
    if trimmed.is_empty() {
        return LineKind::Blank;
    }
    if let Some(fence) = Fence::parse(line) {
        return LineKind::Fence(fence);
    }
    let level = trimmed.len() - trimmed.trim_start_matches('#').len();
    if (1..=MAX_HEADING).contains(&level) && trimmed[level..].starts_with(' ') {
        let text = trimmed[level..].trim();
        // Marks at the end belong to the heading.
        let without = text.trim_end_matches('#');
        let text = if without.is_empty() || without.ends_with(' ') { without.trim_end() } else { text };
        return LineKind::Heading { level, text };
    }
    let is_all = |mark: char| trimmed.chars().all(|c| c == mark || c == ' ') && trimmed.matches(mark).count() >= 3;
    if is_all('-') || is_all('=') {
        return if trimmed.contains('-') && trimmed.contains(' ') { LineKind::Rule } else { underline(trimmed) };
    }
    if is_all('*') || is_all('_') {
        return LineKind::Rule;
    }
    if let Some(text) = trimmed.strip_prefix('>') {
        return LineKind::Quote(text.trim_start_matches(['>', ' ']));
    }
    if trimmed.len() > 1 && trimmed.starts_with('|') {
        return LineKind::TableRow(trimmed);
    }
    if let Some((mark, text)) = item(trimmed) {
        return LineKind::Item { indent: indent(line), mark, text };
    }
    match line.strip_prefix("    ").or_else(|| line.strip_prefix('\t')) {
        Some(code) => LineKind::IndentedCode(code),
        None => LineKind::Text,
    }
}

/// `---` is a rule, unless it is below a paragraph; `===` is only an underline.
fn underline(line: &str) -> LineKind<'_> {
    if line.starts_with('-') && line.len() == 3 { LineKind::Rule } else { LineKind::Underline }
}

/// The mark and the text of an item of a list.
fn item(line: &str) -> Option<(String, &str)> {
    let (mark, text) = line.split_once(' ').unwrap_or((line, ""));
    let text = text.trim_start();
    if matches!(mark, "-" | "*" | "+") {
        for (open, shown) in [("[ ] ", "☐"), ("[x] ", "☑"), ("[X] ", "☑")] {
            if let Some(text) = text.strip_prefix(open) {
                return Some((shown.to_owned(), text));
            }
        }
        return Some(("•".to_owned(), text));
    }
    let number = mark.strip_suffix(['.', ')'])?;
    let is_number = (1..=9).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| (mark.to_owned(), text))
}

impl Fence {
    fn parse(line: &str) -> Option<Self> {
        let trimmed = line.trim_start();
        let mark = trimmed.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = trimmed.len() - trimmed.trim_start_matches(mark).len();
        let language = trimmed[length..].trim();
        // Code inside of a line may begin with three backticks.
        (length >= 3 && !language.contains('`')).then(|| Self {
            mark,
            length,
            indent: line.len() - trimmed.len(),
            language: language.to_lowercase(),
        })
    }

    pub fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|c| c == self.mark)
    }

    /// A line of the code, without the indentation of the fence.
    pub fn content<'a>(&self, line: &'a str) -> &'a str {
        let spaces = line.bytes().take(self.indent).take_while(|byte| *byte == b' ').count();
        &line[spaces..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_what_they_begin_with() {
        let item = |indent, mark: &str, text| LineKind::Item { indent, mark: mark.to_owned(), text };
        for (line, kind) in [
            ("", LineKind::Blank),
            ("## Two ##", LineKind::Heading { level: 2, text: "Two" }),
            ("# C#", LineKind::Heading { level: 1, text: "C#" }),
            ("#hashtag", LineKind::Text),
            ("---", LineKind::Rule),
            ("* * *", LineKind::Rule),
            ("=====", LineKind::Underline),
            ("- a", item(0, "•", "a")),
            ("  * [ ] a", item(2, "☐", "a")),
            ("12) a", item(0, "12)", "a")),
            ("2024. A year", item(0, "2024.", "A year")),
            ("**bold** text", LineKind::Text),
            ("-5 degrees", LineKind::Text),
            ("> > a", LineKind::Quote("a")),
            ("| a | b |", LineKind::TableRow("| a | b |")),
            ("|", LineKind::Text),
            ("    code", LineKind::IndentedCode("code")),
            ("``` inline ``` code", LineKind::Text),
        ] {
            assert_eq!(classify(line), kind, "{line:?}");
        }
        assert!(matches!(classify("~~~~ Rust"), LineKind::Fence(fence) if fence.language == "rust"));
    }
}
