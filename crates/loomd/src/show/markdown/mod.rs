//! [`Markdown`]: renders the Markdown of messages while it streams. A block is returned once it is complete; what
//! [`Markdown::pending`] returns may still change.
//!
//! Covers what models write: headings, paragraphs, lists, quotes, code, tables, rules and the marks inside of a line.
//! Anything else is shown as it is. Without colour the marks stay, because nothing else would show them. The text must
//! have been cleaned of control characters.

mod inline;
mod line;
mod table;

use inline::spans;
use line::{Fence, LineKind, classify};

use super::style::{Paint, Style};

/// A paragraph longer than this is rendered in parts, so that rendering a pending one stays cheap.
const MAX_BLOCK: usize = 8 * 1024;

/// The most rows of a table.
const MAX_ROWS: usize = 500;

/// Code is indented by this.
const CODE_INDENT: &str = "    ";

const LONGEST_RULE: usize = 40;

#[derive(Clone)]
pub struct Markdown {
    style: Style,
    /// The incomplete last line.
    line: String,
    block: Block,
    /// An empty line comes before the next block.
    gap: bool,
    printed: bool,
    /// The last block was an item of a list or belongs to one, so an indented line is no code.
    in_list: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Block {
    None,
    Paragraph {
        /// Before the first line, and before the others.
        prefixes: (Prefix, Prefix),
        source: String,
    },
    Code(Fence),
    Table(Vec<String>),
}

/// What a line begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Prefix {
    text: String,
    paint: Option<Paint>,
}

impl Prefix {
    fn spaces(count: usize) -> Self {
        Self { text: " ".repeat(count), paint: None }
    }
}

impl Markdown {
    pub fn new(style: Style) -> Self {
        Self { style, line: String::new(), block: Block::None, gap: false, printed: false, in_list: false }
    }

    pub fn restyle(&mut self, style: Style) {
        self.style = style;
    }

    /// Returns the lines that are complete.
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        for part in text.split_inclusive('\n') {
            self.line.push_str(part);
            if part.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                self.add_line(line.trim_end_matches('\n'), &mut out);
            } else if self.line.len() > MAX_BLOCK {
                let line = std::mem::take(&mut self.line);
                self.add_line(&line, &mut out);
            }
        }
        out
    }

    /// The lines of what is incomplete, as they are so far.
    pub fn pending(&self) -> String {
        self.clone().finish()
    }

    /// Returns the rest, and begins a new text.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.add_line(&line, &mut out);
        }
        self.end_block(&mut out);
        *self = Self::new(self.style);
        out
    }

    fn add_line(&mut self, line: &str, out: &mut String) {
        if let Block::Code(fence) = &self.block {
            if fence.is_closed_by(line) {
                self.block = Block::None;
            } else {
                let code = fence.content(line).to_owned();
                let is_diff = fence.language == "diff";
                self.print_code(&code, is_diff, out);
            }
            return;
        }
        let in_table = matches!(self.block, Block::Table(_));
        let in_paragraph = matches!(self.block, Block::Paragraph { .. });
        match classify(line) {
            LineKind::Blank => {
                self.end_block(out);
                self.gap = self.printed;
            }
            LineKind::TableRow(row) => match &mut self.block {
                Block::Table(rows) if rows.len() < MAX_ROWS => rows.push(row.to_owned()),
                _ => {
                    self.end_block(out);
                    self.block = Block::Table(vec![row.to_owned()]);
                }
            },
            _ if in_table => {
                self.end_block(out);
                self.add_line(line, out);
            }
            LineKind::Fence(fence) => {
                self.end_block(out);
                // The line of the language says nothing that the code does not.
                self.block = Block::Code(fence);
            }
            LineKind::Heading { level, text } => {
                self.end_block(out);
                self.in_list = false;
                self.print_heading(&format!("{} ", "#".repeat(level)), text, out);
            }
            LineKind::Underline if in_paragraph => {
                if let Block::Paragraph { source, .. } = std::mem::replace(&mut self.block, Block::None) {
                    self.print_heading("# ", &source, out);
                }
            }
            LineKind::Underline | LineKind::Rule if line.trim().starts_with(['-', '*', '_']) => {
                self.end_block(out);
                let length = self.style.width().unwrap_or(LONGEST_RULE).min(LONGEST_RULE);
                let rule = self.style.paint(Paint::Dim, &"─".repeat(length));
                self.print(&rule, out);
            }
            LineKind::Item { indent, mark, text } => {
                self.end_block(out);
                self.in_list = true;
                let width = super::style::width(&mark) + 1;
                let first = Prefix { text: format!("{}{mark} ", " ".repeat(indent)), paint: Some(Paint::Cyan) };
                let prefixes = (first, Prefix::spaces(indent + width));
                self.block = Block::Paragraph { prefixes, source: text.to_owned() };
            }
            LineKind::Quote(text) => {
                let bar = Prefix { text: "│ ".to_owned(), paint: Some(Paint::Dim) };
                let continues =
                    matches!(&self.block, Block::Paragraph { prefixes, .. } if prefixes.0 == bar && !text.is_empty());
                if !continues {
                    self.end_block(out);
                    self.block = Block::Paragraph { prefixes: (bar.clone(), bar), source: String::new() };
                }
                self.continue_paragraph(text, out);
            }
            LineKind::IndentedCode(code) if !in_paragraph && !self.in_list => self.print_code(code, false, out),
            LineKind::Underline | LineKind::Rule | LineKind::IndentedCode(_) | LineKind::Text => {
                if !in_paragraph {
                    let indent = line::indent(line);
                    self.in_list &= indent > 0;
                    let prefixes = (Prefix::spaces(indent), Prefix::spaces(indent));
                    self.block = Block::Paragraph { prefixes, source: String::new() };
                }
                self.continue_paragraph(line.trim_start(), out);
            }
        }
    }

    fn continue_paragraph(&mut self, line: &str, out: &mut String) {
        let Block::Paragraph { source, prefixes } = &mut self.block else { return };
        if !source.is_empty() {
            // Two spaces or a backslash at the end break the line.
            let kept = source.trim_end_matches(' ').len();
            if source.len() >= kept + 2 {
                source.truncate(kept);
                source.push('\n');
            } else if source.ends_with('\\') {
                source.pop();
                source.push('\n');
            } else {
                source.push(' ');
            }
        }
        source.push_str(line);
        if source.len() > MAX_BLOCK {
            let rest = prefixes.1.clone();
            self.end_block(out);
            self.block = Block::Paragraph { prefixes: (rest.clone(), rest), source: String::new() };
        }
    }

    fn end_block(&mut self, out: &mut String) {
        match std::mem::replace(&mut self.block, Block::None) {
            // Code ends with the message at the latest.
            Block::None | Block::Code(_) => {}
            Block::Paragraph { prefixes: (first, rest), source } => {
                let paint = |prefix: &Prefix| match prefix.paint {
                    Some(paint) => self.style.paint(paint, &prefix.text),
                    None => prefix.text.clone(),
                };
                let room = self.style.width().map(|width| {
                    let prefix = super::style::width(&first.text).max(super::style::width(&rest.text));
                    width.saturating_sub(prefix).max(8)
                });
                let mut lines =
                    source.lines().flat_map(|line| inline::wrap(self.style, &spans(self.style, line), room));
                let head = lines.next().unwrap_or_default();
                let mut text = format!("{}{head}", paint(&first));
                for line in lines {
                    text += &format!("\n{}{line}", paint(&rest));
                }
                if !source.trim().is_empty() || first.paint.is_some() {
                    self.print(&text, out);
                }
            }
            Block::Table(rows) => {
                let table = table::render(self.style, &rows);
                self.print(table.trim_end_matches('\n'), out);
            }
        }
    }

    fn print_heading(&mut self, marks: &str, text: &str, out: &mut String) {
        let marks = if self.style.has_colour() { "" } else { marks };
        let mut spans = spans(self.style, text);
        for span in &mut spans {
            span.paint = span.paint.or(Some(Paint::Bold));
        }
        spans.insert(0, inline::Span { text: marks.to_owned(), paint: None });
        let text = inline::wrap(self.style, &spans, self.style.width()).join("\n");
        self.print(&text, out);
    }

    fn print_code(&mut self, code: &str, is_diff: bool, out: &mut String) {
        let paint = match code.as_bytes().first() {
            Some(b'+') if is_diff => Paint::Green,
            Some(b'-') if is_diff => Paint::Red,
            _ => Paint::Cyan,
        };
        let line = format!("{CODE_INDENT}{}", self.style.paint(paint, code));
        self.print(line.trim_end(), out);
    }

    fn print(&mut self, text: &str, out: &mut String) {
        if std::mem::take(&mut self.gap) {
            out.push('\n');
        }
        self.printed = true;
        out.push_str(text);
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;

    fn rendered(text: &str, width: usize, colour: bool) -> String {
        let mut markdown = Markdown::new(Style::new(Some(width), colour));
        let out = markdown.push(text) + &markdown.finish();
        out.replace('\u{1b}', "␛")
    }

    const DOCUMENT: &str = "\
# The *plan*

First some **bold text** and `code with ** in it`, then a [link](https://example.com/a_b_c) and
a second line of the paragraph with snake_case_words and 2 * 3 * 4.

- one item that is long enough to be wrapped at the width of a narrow terminal
  - an inner one
- [x] done
10. ten

> quoted
> text

```rust
fn main() { // not **bold**
}
```

| name | meaning |
|------|:-------:|
| `a` | the first letter |
| b | the second |

---
Title
=====
The end.";

    #[test]
    fn a_document_without_colour() {
        assert_snapshot!(rendered(DOCUMENT, 60, false));
    }

    #[test]
    fn a_document_in_colour() {
        assert_snapshot!(rendered(DOCUMENT, 60, true));
    }

    #[test]
    fn a_table_that_does_not_fit_becomes_a_list() {
        assert_snapshot!(rendered(DOCUMENT, 20, false));
    }

    #[test]
    fn code_is_printed_line_by_line_and_paragraphs_when_they_are_complete() {
        let mut markdown = Markdown::new(Style::new(Some(40), false));
        assert_eq!(markdown.push("A **bo"), "");
        assert_eq!(markdown.pending(), "A **bo\n");
        assert_eq!(markdown.push("ld** word.\nmore"), "");
        assert_eq!(markdown.pending(), "A **bold** word. more\n");
        assert_eq!(markdown.push("\n\n```\nlet x"), "A **bold** word. more\n");
        assert_eq!(markdown.push(" = 1;\nlet y"), "\n    let x = 1;\n");
        assert_eq!(markdown.pending(), "    let y\n");
        assert_eq!(markdown.push(" = 2;\n```\n"), "    let y = 2;\n");
        assert_eq!(markdown.finish(), "");
    }

    #[test]
    fn a_fence_in_a_list_keeps_the_indentation_of_its_code() {
        assert_eq!(
            rendered("1. do\n   ```\n   a\n     b\n   ```\n2. then", 40, false),
            "1. do\n    a\n      b\n2. then\n"
        );
    }

    proptest! {
        #[test]
        fn rendering_does_not_depend_on_chunks(
            text in "([-#>|`*_ ab\\[\\]()~\\\\=0.]{0,12}\n?){0,12}", at in 0usize..100, colour in any::<bool>()
        ) {
            let at = text.char_indices().map(|(at, _)| at).nth(at).unwrap_or(text.len());
            let style = Style::new(Some(30), colour);
            let (mut whole, mut parts) = (Markdown::new(style), Markdown::new(style));
            let expected = whole.push(&text) + &whole.finish();
            let mut out = parts.push(&text[..at]);
            let pending = parts.pending();
            prop_assert!(pending.is_empty() || pending.ends_with('\n'));
            out += &parts.push(&text[at..]);
            out += &parts.finish();
            prop_assert_eq!(out, expected);
        }

        #[test]
        fn no_letter_is_lost(text in "[-#>|`*_ ab\n\\[\\]()~1.]{0,80}") {
            let letters = |text: &str| text.chars().filter(|c| matches!(c, 'a' | 'b')).collect::<String>();
            // A fence's first line names a language, which is not shown.
            prop_assume!(!text.contains("```") && !text.contains("~~~"));
            prop_assert_eq!(letters(&rendered(&text, 30, false)), letters(&text));
        }
    }
}
