//! Replaces the other agent's name in instructions.

/// The replacements, in order: whole words, in any case.
const NAMES: &[(&str, &str)] = &[
    ("claude.md", "AGENTS.md"),
    ("claude code", "Codex"),
    ("claude-code", "Codex"),
    ("claude_code", "Codex"),
    ("claudecode", "Codex"),
    ("claude", "Codex"),
];

pub(super) fn renamed(text: &str) -> String {
    NAMES.iter().fold(text.to_owned(), |text, (name, new)| replace_words(&text, name, new))
}

/// `word` is lower-case ASCII.
fn replace_words(text: &str, word: &str, new: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut replaced = String::with_capacity(text.len());
    let mut done = 0;
    let mut from = 0;
    while let Some(found) = lower[from..].find(word).map(|at| at + from) {
        let end = found + word.len();
        let is_part = |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || char == '_');
        if !is_part(text[..found].chars().next_back()) && !is_part(text[end..].chars().next()) {
            replaced.push_str(&text[done..found]);
            replaced.push_str(new);
            done = end;
        }
        from = end;
    }
    replaced + &text[done..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_as_whole_words_in_any_case() {
        for (text, expected) in [
            ("Ask Claude Code or CLAUDE.", "Ask Codex or Codex."),
            ("See CLAUDE.md, claude_code and claude-code.", "See AGENTS.md, Codex and Codex."),
            ("claudette and xclaude stay", "claudette and xclaude stay"),
            ("claudeclaude claude", "claudeclaude Codex"),
            ("ünder claude é", "ünder Codex é"),
            ("", ""),
        ] {
            assert_eq!(renamed(text), expected);
        }
    }
}
