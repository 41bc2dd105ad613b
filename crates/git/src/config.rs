//! A parser for single values of git's configuration: sections, quotes, comments, continued lines.

/// The first value of `key` in `[section "subsection"]`.
pub(crate) fn value(text: &str, section: &str, subsection: &str, key: &str) -> Option<String> {
    let text = text.replace("\\\r\n", "").replace("\\\n", "");
    let mut inside = false;
    for line in text.lines() {
        let mut line = line.trim();
        if line.starts_with('[') {
            let end = header_end(line)?;
            inside = is_header(&line[1..end], section, subsection);
            line = line[end + 1..].trim();
        }
        let Some((name, written)) = line.split_once('=').filter(|_| inside) else { continue };
        if name.trim().eq_ignore_ascii_case(key) {
            return Some(unquoted(written.trim()));
        }
    }
    None
}

/// The position of the bracket that closes the header, outside of quotes.
fn header_end(line: &str) -> Option<usize> {
    let mut quoted = false;
    let mut escaped = false;
    line.char_indices().find_map(|(at, char)| {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return Some(at),
            _ => {}
        }
        None
    })
}

fn is_header(header: &str, section: &str, subsection: &str) -> bool {
    let Some((name, rest)) = header.split_once(char::is_whitespace) else { return false };
    let written = rest.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    name.eq_ignore_ascii_case(section) && written.is_some_and(|written| written.replace('\\', "") == subsection)
}

/// The value without quotes, escapes and comments.
fn unquoted(written: &str) -> String {
    let mut value = String::new();
    // Trailing white space outside of quotes is trimmed up to here.
    let mut keep = 0;
    let mut quoted = false;
    let mut chars = written.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            '\\' => match chars.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('b') => _ = value.pop(),
                Some(other) => value.push(other),
                None => {}
            },
            other => value.push(other),
        }
        if quoted || !char.is_whitespace() {
            keep = value.len();
        }
    }
    value.truncate(keep);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(value(text, "remote", "origin", "url").as_deref(), expected, "{text:?}");
    }

    #[test]
    fn the_value_of_the_right_section_is_found() {
        check("[remote \"origin\"]\n\turl = https://e/r.git\n", Some("https://e/r.git"));
        check("[remote \"other\"]\nurl = a\n[remote \"origin\"]\nfetch = x\nURL=b", Some("b"));
        check("[Remote \"origin\"] url = one\n", Some("one"));
        check("[remote \"a]b\"]\nurl = x\n[remote \"origin\"]\nurl = y", Some("y"));
        check("[remote \"origin\"]\nurl = a\nurl = b", Some("a"));
    }

    #[test]
    fn quotes_comments_and_continued_lines_are_parsed() {
        check("[remote \"origin\"]\nurl = \"a # b\" # c", Some("a # b"));
        check("[remote \"origin\"]\nurl = a\\\nb ; c", Some("ab"));
        check("[remote \"origin\"]\nurl = C:\\\\x", Some("C:\\x"));
    }

    #[test]
    fn a_missing_value_is_none() {
        for text in ["", "[remote \"origin\"]", "[remote \"origin", "url = a", "[remote]\nurl = a", "[core]\nurl = a"] {
            check(text, None);
        }
    }
}
