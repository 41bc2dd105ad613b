//! Unified diffs of two texts.

use std::fmt::Write;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, Hunk, InternedInput};

/// The hunks with this many lines of context, without file headers. Empty if nothing differs.
pub(crate) fn unified(before: &str, after: &str, context: u32) -> String {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let changes: Vec<_> = diff.hunks().collect();

    let mut text = String::new();
    // Changes whose context would touch form one hunk.
    for group in changes.chunk_by(|one, next| next.before.start - one.before.end <= 2 * context) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let lead = context.min(first.before.start);
        let tail = context.min(input.before.len() as u32 - last.before.end);
        let shown = Hunk {
            before: first.before.start - lead..last.before.end + tail,
            after: first.after.start - lead..last.after.end + tail,
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "@@ -{} +{} @@", range(&shown.before), range(&shown.after));
        let mut next = shown.before.start;
        for change in group {
            lines(&mut text, ' ', &input, &input.before, next..change.before.start);
            lines(&mut text, '-', &input, &input.before, change.before.clone());
            lines(&mut text, '+', &input, &input.after, change.after.clone());
            next = change.before.end;
        }
        lines(&mut text, ' ', &input, &input.before, next..shown.before.end);
    }
    text
}

/// Number of bytes of `before` that are also in `after`.
pub(crate) fn kept(before: &str, after: &str) -> usize {
    let input = InternedInput::new(before, after);
    let diff = Diff::compute(Algorithm::Histogram, &input);
    let tokens = input.before.iter().zip(0..);
    tokens.filter(|(_, at)| !diff.is_removed(*at)).map(|(token, _)| input.interner[*token].len()).sum()
}

fn range(lines: &Range<u32>) -> String {
    match lines.len() {
        // An empty range has the number of the line before it.
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        length => format!("{},{length}", lines.start + 1),
    }
}

fn lines(text: &mut String, sign: char, input: &InternedInput<&str>, side: &[imara_diff::Token], range: Range<u32>) {
    for token in &side[range.start as usize..range.end as usize] {
        let line = input.interner[*token];
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_have_the_unified_format() {
        for (before, after, context, expected) in [
            ("a\n", "a\n", 1, ""),
            ("a\n", "A\n", 1, "@@ -1 +1 @@\n-a\n+A\n"),
            ("", "x\n", 1, "@@ -0,0 +1 @@\n+x\n"),
            ("a\n", "", 1, "@@ -1 +0,0 @@\n-a\n"),
            ("a\nb\nc\nd\n", "a\nb\nc\nd\ne\n", 1, "@@ -4 +4,2 @@\n d\n+e\n"),
            ("a\nb", "a\nB\n", 1, "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+B\n"),
            ("1\n2\n3\n4\n5\n", "1\nx\n3\ny\n5\n", 1, "@@ -1,5 +1,5 @@\n 1\n-2\n+x\n 3\n-4\n+y\n 5\n"),
            ("1\n2\n3\n4\n", "x\n2\n3\ny\n", 0, "@@ -1 +1 @@\n-1\n+x\n@@ -4 +4 @@\n-4\n+y\n"),
            (
                "1\n2\n3\n4\n5\n6\n",
                "x\n2\n3\n4\n5\ny\n",
                1,
                "@@ -1,2 +1,2 @@\n-1\n+x\n 2\n@@ -5,2 +5,2 @@\n 5\n-6\n+y\n",
            ),
        ] {
            assert_eq!(unified(before, after, context), expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn kept_counts_bytes() {
        assert_eq!(kept("one\ntwo\nthree\n", "zero\none\nthree\n"), "one\nthree\n".len());
    }
}
