//! Locations in files, as users count them: lines and columns from one, columns in characters, the end inclusive.

use std::fmt;
use std::ops::Range;

use loomd_protocol::{AbsolutePathBuf, TextPosition, TextRange};

/// The location of an error.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceLocation {
    pub path: AbsolutePathBuf,
    pub range: TextRange,
}

impl SourceLocation {
    /// Converts a byte span of `text`. A span outside of the text is clamped.
    pub(crate) fn new(path: AbsolutePathBuf, text: &str, span: Range<usize>) -> Self {
        let start = text.floor_char_boundary(span.start);
        let end = text.floor_char_boundary(span.end.saturating_sub(1)).max(start);
        Self { path, range: TextRange { start: position(text, start), end: position(text, end) } }
    }
}

fn position(text: &str, offset: usize) -> TextPosition {
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    TextPosition {
        line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

/// `path:line:column`
impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TextPosition { line, column } = self.range.start;
        write!(f, "{}:{line}:{column}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, span: Range<usize>, start: (usize, usize), end: (usize, usize)) {
        let location = SourceLocation::new(AbsolutePathBuf::new("/c").unwrap(), text, span);
        let at = |(line, column)| TextPosition { line, column };
        assert_eq!(location.range, TextRange { start: at(start), end: at(end) }, "{text:?}");
        assert_eq!(location.to_string(), format!("/c:{}:{}", start.0, start.1));
    }

    #[test]
    fn lines_and_columns_start_at_one_and_the_end_is_inclusive() {
        check("a = 5\n", 4..5, (1, 5), (1, 5));
        check("a = 5\nb = \"xy\"\n", 10..14, (2, 5), (2, 8));
        check("a = [\n1,\n2]\n", 4..11, (1, 5), (3, 2));
    }

    #[test]
    fn columns_count_characters() {
        check("\"é☃\" = \"ß☃\"", 10..17, (1, 8), (1, 11));
    }

    #[test]
    fn empty_and_out_of_range_spans_are_clamped() {
        check("a = [", 5..5, (1, 6), (1, 6));
        check("a\n", 2..2, (2, 1), (2, 1));
        check("", 7..9, (1, 1), (1, 1));
        check("☃", 1..2, (1, 1), (1, 1));
    }
}
