//! A script that is one command and the text it is fed: the command's words are still plain to see.

use crate::script::is_command_name;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heredoc {
    pub words: Vec<String>,
    /// Whether it also writes or reads files, or sets variables, beyond what its words say.
    pub redirected: bool,
}

/// A script that is one command with unquoted words and one here-document without expansions.
pub(crate) fn heredoc(script: &str) -> Option<Heredoc> {
    let (line, body) = script.trim_start().split_once('\n')?;
    let (before, after) = line.split_once("<<")?;
    let tabs = after.starts_with('-');
    let after = after.strip_prefix('-').unwrap_or(after).trim_start_matches([' ', '\t']);
    if after.starts_with('<') || after.contains("<<") {
        return None;
    }
    let end = after.find([' ', '\t', '>', '<', ';', '&', '|', '#']).unwrap_or(after.len());
    let (delimiter, after) = after.split_at(end);
    let name = delimiter.trim_matches(['\'', '"']).trim_start_matches('\\');
    let literal = name != delimiter;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')) {
        return None;
    }
    let is_end = |line: &str| if tabs { line.trim_start_matches('\t') == name } else { line == name };
    let lines: Vec<_> = body.split('\n').collect();
    let last = lines.iter().position(|line| is_end(line))?;
    if lines[last + 1..].iter().any(|line| !line.trim().is_empty()) {
        return None;
    }
    if !literal && lines[..last].iter().any(|line| line.contains(['$', '`'])) {
        return None;
    }
    let mut words = Vec::new();
    let mut redirected = false;
    let mut target = false;
    for word in before.split_whitespace().chain(after.split_whitespace()) {
        if word.contains(['\'', '"', '$', '`', '(', ')', '{', ';', '&', '|', '\\', '#']) && !word.starts_with("2>&") {
            return None;
        }
        if std::mem::take(&mut target) {
            continue;
        }
        if let Some(at) = word.find(['<', '>']) {
            if !word[..at].chars().all(|c| c.is_ascii_digit()) {
                return None;
            }
            redirected = true;
            target = word[at..].trim_start_matches(['<', '>']).is_empty();
        } else {
            words.push(word.to_owned());
        }
    }
    let name = words.first()?;
    (is_command_name(name) && !target).then_some(Heredoc { words, redirected })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Script;

    #[test]
    fn one_command_with_a_here_document_has_words() {
        let check = |script: &str, expected: Option<(&[&str], bool)>| {
            let expected = expected.map_or(Script::Opaque, |(words, redirected)| {
                Script::Heredoc(Heredoc { words: words.iter().map(ToString::to_string).collect(), redirected })
            });
            assert_eq!(Script::parse(script), expected, "{script:?}");
        };
        check("python3 - <<'PY'\nprint('$x')\nPY", Some((&["python3", "-"], false)));
        check("zz <<EOF\nx\nEOF\n", Some((&["zz"], false)));
        check("zz a <<-EOF b\n\tx\n\tEOF", Some((&["zz", "a", "b"], false)));
        check("zz <<\"EOF\"\nx\nEOF", Some((&["zz"], false)));
        check("zz <<\\EOF\n$x\nEOF", Some((&["zz"], false)));
        check("cat <<EOF > out\nx\nEOF", Some((&["cat"], true)));
        check("cat >out 2>&1 <<EOF\nx\nEOF", Some((&["cat"], true)));
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
        ] {
            check(script, None);
        }
    }
}
