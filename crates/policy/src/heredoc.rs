//! Scripts of one command with a here-document as its input, whose words are known.

use crate::script::{ScriptParser, is_command_name};
use crate::word::Word;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heredoc {
    pub words: Vec<Word>,
    /// Whether it also redirects to or from files.
    pub redirected: bool,
}

/// A script that is one command with unquoted words and one here-document without expansions. The delimiter is
/// `NAME`, `'NAME'` or `"NAME"`: shells disagree with each other about stranger ones.
pub(crate) fn heredoc(script: &str) -> Option<Heredoc> {
    if script.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')) {
        return None;
    }
    let (line, body) = script.trim_start_matches([' ', '\t', '\n']).split_once('\n')?;
    let mut found = Heredoc { words: Vec::new(), redirected: false };
    let mut delimiter = None;
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        if rest.is_empty() {
            break;
        } else if let Some((redirection, after)) = redirection(rest) {
            rest = after;
            match redirection {
                Redirection::File => found.redirected = true,
                Redirection::Text(text) if delimiter.is_none() => delimiter = Some(text),
                Redirection::Text(_) => return None,
            }
        } else {
            let (word, after) = unquoted(rest)?;
            found.words.push(word);
            rest = after;
        }
    }
    let body_ends = delimiter?.ends(body)?;
    (body_ends && is_command_name(found.words.first()?)).then_some(found)
}

enum Redirection<'a> {
    /// To or from a file, or another descriptor.
    File,
    Text(Delimiter<'a>),
}

struct Delimiter<'a> {
    name: &'a str,
    /// Whether nothing in the text is expanded.
    quoted: bool,
    /// Whether leading tabs are removed.
    tabs: bool,
}

impl Delimiter<'_> {
    /// Whether the text ends with the script, and nothing in it is expanded; `None` when it does not end.
    fn ends(&self, body: &str) -> Option<bool> {
        let is_end =
            |line: &str| if self.tabs { line.trim_start_matches('\t') == self.name } else { line == self.name };
        let lines: Vec<_> = body.split('\n').collect();
        let last = lines.iter().position(|line| is_end(line))?;
        // Where it is not quoted, a backslash joins lines before the end is looked for.
        let expands = !self.quoted && lines[..last].iter().any(|line| line.contains(['$', '`', '\\']));
        let over = lines[last + 1..].iter().all(|line| line.chars().all(|c| matches!(c, ' ' | '\t')));
        Some(over && !expands)
    }
}

/// The redirection that the text begins with, if any, and what follows it.
fn redirection(text: &str) -> Option<(Redirection<'_>, &str)> {
    let operator = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = operator.len() != text.len();
    if let Some(after) = operator.strip_prefix("<<").filter(|_| !numbered) {
        let (tabs, after) = after.strip_prefix('-').map_or((false, after), |after| (true, after));
        let (name, quoted, after) = name(after.trim_start_matches([' ', '\t']))?;
        return Some((Redirection::Text(Delimiter { name, quoted, tabs }), after));
    }
    let after = [">>", ">", "<"].iter().find_map(|sign| operator.strip_prefix(sign))?;
    if let Some(to) = after.strip_prefix('&') {
        let after = to.trim_start_matches(|c: char| c.is_ascii_digit());
        let copied = after.len() != to.len() && (after.is_empty() || after.starts_with([' ', '\t']));
        return copied.then_some((Redirection::File, after));
    }
    let (_, after) = unquoted(after.trim_start_matches([' ', '\t']))?;
    Some((Redirection::File, after))
}

/// The name of a delimiter, and whether it was quoted as a whole. It ends the word.
fn name(text: &str) -> Option<(&str, bool, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let text = quote.map_or(text, |_| &text[1..]);
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, after) = text.split_at(end);
    let after = match quote {
        Some(quote) => after.strip_prefix(quote)?,
        None => after,
    };
    let whole = after.is_empty() || after.starts_with([' ', '\t']);
    (!name.is_empty() && whole).then_some((name, quote.is_some(), after))
}

/// A word without quotes or expansions, which ends at a blank.
fn unquoted(text: &str) -> Option<(Word, &str)> {
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    let mut parser = ScriptParser { rest: word };
    let word = parser.word()??;
    (parser.rest.is_empty() && !word.is_quoted() && !word.expands() && !word.text().contains('\\'))
        .then_some((word, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Script;

    fn check(script: &str, expected: Option<(&[&str], bool)>) {
        let found = match Script::parse(script) {
            Script::Heredoc(found) => Some((found.words.iter().map(Word::text).collect(), found.redirected)),
            Script::Plain(_) => panic!("{script:?} has a here-document"),
            Script::Opaque => None,
        };
        let expected =
            expected.map(|(words, redirected)| (words.iter().map(ToString::to_string).collect::<Vec<_>>(), redirected));
        assert_eq!(found, expected, "{script:?}");
    }

    #[test]
    fn a_single_command_with_a_here_document_is_parsed() {
        check("python3 - <<'PY'\nprint('$x')\nPY", Some((&["python3", "-"], false)));
        check("zz <<EOF\nx\nEOF\n", Some((&["zz"], false)));
        check("zz a <<-EOF b\n\tx\n\tEOF", Some((&["zz", "a", "b"], false)));
        check("zz <<\"EOF\"\nx\nEOF", Some((&["zz"], false)));
        check("zz << EOF\nx\nEOF", Some((&["zz"], false)));
        check("cat <<EOF > out\nx\nEOF", Some((&["cat"], true)));
        check("cat >out 2>&1 <<EOF\nx\nEOF", Some((&["cat"], true)));
        check("<<EOF zz a\nEOF", Some((&["zz", "a"], false)));
    }

    #[test]
    fn other_here_documents_are_opaque() {
        for script in [
            "zz <<EOF",
            "zz <<EOF\nx",
            "zz <<EOF && yy\nx\nEOF",
            "zz <<EOF\nx\nEOF\nyy",
            "zz <<EOF | yy\nx\nEOF",
            "zz $b <<EOF\nx\nEOF",
            "zz 'b c' <<EOF\nx\nEOF",
            "zz <<EOF\n$(rm x)\nEOF",
            "zz <<EOF;\nx\nEOF",
            "zz <<A <<B\nx\nA\ny\nB",
            "zz <<EOF > $x\nx\nEOF",
            "zz <<< EOF\nEOF",
            "X=1 zz <<EOF\nx\nEOF",
            "! zz <<EOF\nx\nEOF",
            "<<EOF\nx\nEOF",
            "zz * <<EOF\nx\nEOF",
        ] {
            check(script, None);
        }
    }

    #[test]
    fn a_delimiter_that_is_not_one_name_is_opaque() {
        for delimiter in [
            "\\EOF",
            "\\\\EOF",
            "\"'EOF'\"",
            "\"EOF'",
            "'EOF\"",
            "E\\OF",
            "E'O'F",
            "''EOF",
            "'EOF''",
            "'E F'",
            "-",
            "E.F",
            "E$F",
            "\"\\EOF\"",
        ] {
            check(&format!("zz <<{delimiter}\nrm x\nEOF\n{delimiter}\n'EOF'\n\\EOF"), None);
            check(&format!("zz <<{delimiter}\nx\nEOF"), None);
        }
    }

    #[test]
    fn a_command_behind_a_redirection_is_opaque() {
        for rest in [
            "2>&1;rm x",
            "2>&1&rm x",
            "2>&1|rm",
            ">&2;rm",
            "2>&$x",
            "2>&1x",
            "2>&-;rm",
            ">a;rm",
            "&>a",
            ">|a",
            "<>a",
            ">(rm)",
        ] {
            check(&format!("zz <<EOF {rest}\nx\nEOF"), None);
            check(&format!("zz {rest} <<EOF\nx\nEOF"), None);
        }
        check("zz a2<<EOF\nEOF", None);
        check("zz 2<<EOF\nEOF", None);
    }

    #[test]
    fn an_unquoted_here_document_with_a_continued_line_is_opaque() {
        check("zz <<EOF\nE\\\nOF\nrm x\nEOF", None);
        check("zz <<'EOF'\nE\\\nOF\nrm x\nEOF", Some((&["zz"], false)));
    }
}
