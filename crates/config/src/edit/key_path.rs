//! Dotted key paths. A segment may be quoted as in TOML, and may then contain dots.

/// Splits a path into its segments, outermost first. Unbalanced quotes are ordinary characters.
pub fn parse(path: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = path;
    loop {
        let (part, after) = quoted(rest).unwrap_or_else(|| match rest.split_once('.') {
            Some((part, after)) => (part.to_owned(), Some(after)),
            None => (rest.to_owned(), None),
        });
        parts.push(part);
        match after {
            Some(after) => rest = after,
            None => return parts,
        }
    }
}

/// Returns a quoted segment that a dot or the end follows, and the text behind the dot.
fn quoted(text: &str) -> Option<(String, Option<&str>)> {
    let quote = text.chars().next().filter(|char| matches!(char, '"' | '\''))?;
    let mut escaped = false;
    let end = text[1..].find(|char| {
        let ends = char == quote && !escaped;
        escaped = quote == '"' && char == '\\' && !escaped;
        ends
    })?;
    let (written, after) = text.split_at(end + 2);
    let after = if after.is_empty() { None } else { Some(after.strip_prefix('.')?) };
    let key: toml_edit::Key = written.parse().ok()?;
    Some((key.get().to_owned(), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, parts: &[&str]) {
        assert_eq!(parse(path), parts, "{path}");
    }

    #[test]
    fn a_path_is_split_at_dots() {
        check("a", &["a"]);
        check("a.b.c", &["a", "b", "c"]);
        check(".a", &["", "a"]);
        check("a..b.", &["a", "", "b", ""]);
    }

    #[test]
    fn quoted_segments_keep_their_dots() {
        check("projects.\"/a.b\".trust_level", &["projects", "/a.b", "trust_level"]);
        check("'x.y'", &["x.y"]);
        check("\"a\\\"b.c\".d", &["a\"b.c", "d"]);
        check("'a\\'.b", &["a\\", "b"]);
    }

    #[test]
    fn unbalanced_quotes_are_ordinary_characters() {
        check("\"a.b", &["\"a", "b"]);
        check("\"a\"b.c", &["\"a\"b", "c"]);
        check("a\"b.c\"", &["a\"b", "c\""]);
        check("\"", &["\""]);
    }
}
