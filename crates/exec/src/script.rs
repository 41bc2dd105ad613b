//! Shell scripts that are nothing but plain commands: literal words, joined by `&&`, `||`, `;`, `|` and line
//! ends. Whatever else a script does it is not taken apart, because what its words become is only known when
//! it runs.

use crate::heredoc::{Heredoc, heredoc};

/// What a command line turns out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Script {
    /// The words of each command, in order.
    Plain(Vec<Vec<String>>),
    /// One command that is fed a here-document.
    Heredoc(Heredoc),
    /// Anything else.
    Opaque,
}

/// The script of `bash`, `zsh` or `sh` with `-c` or `-lc`, whatever the path of the shell.
pub fn script_of(argv: &[String]) -> Option<&str> {
    let [shell, flag, script] = argv else { return None };
    let known = matches!(base_name(shell), "bash" | "zsh" | "sh") && matches!(flag.as_str(), "-c" | "-lc");
    known.then_some(script)
}

pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl Script {
    pub fn parse(script: &str) -> Self {
        match (Parser { rest: script, piped: false }).plain() {
            Some((commands, _)) => Self::Plain(commands),
            None => heredoc(script).map_or(Self::Opaque, Self::Heredoc),
        }
    }
}

/// The commands of a plain script, and whether any is connected to another by a pipe.
pub(crate) fn plain(script: &str) -> Option<(Vec<Vec<String>>, bool)> {
    Parser { rest: script, piped: false }.plain()
}

struct Parser<'a> {
    rest: &'a str,
    piped: bool,
}

/// A word and whether any of it was quoted or escaped.
struct Word {
    text: String,
    quoted: bool,
}

impl Parser<'_> {
    fn plain(mut self) -> Option<(Vec<Vec<String>>, bool)> {
        let mut commands = Vec::new();
        self.skip_blank(true);
        while !self.rest.is_empty() {
            commands.push(self.command()?);
            self.skip_blank(false);
            if self.take("&&") || self.take("||") || self.take_pipe() {
                self.skip_blank(true);
                if self.rest.is_empty() {
                    return None;
                }
            } else if self.take(";") || self.rest.starts_with('\n') {
                self.skip_blank(true);
            } else if !self.rest.is_empty() {
                return None;
            }
        }
        (!commands.is_empty()).then_some((commands, self.piped))
    }

    fn command(&mut self) -> Option<Vec<String>> {
        let name = self.word()??;
        if name.quoted || !is_command_name(&name.text) {
            return None;
        }
        let mut words = vec![name.text];
        loop {
            self.skip_blank(false);
            match self.word()? {
                Some(word) if is_argument(&word) => words.push(word.text),
                Some(_) => return None,
                None => return Some(words),
            }
        }
    }

    /// The next word, `Some(None)` where there is none, `None` where it is not a literal one.
    fn word(&mut self) -> Option<Option<Word>> {
        let mut word = Word { text: String::new(), quoted: false };
        let mut found = false;
        loop {
            let mut chars = self.rest.chars();
            let Some(c) = chars.next() else { break };
            match c {
                ' ' | '\t' | '\n' | ';' | '|' | '&' => break,
                '<' | '>' | '(' | ')' | '$' | '`' => return None,
                // These only look like blanks: to a shell they are part of a word.
                '\r' | '\x0b' | '\x0c' | '\0' => return None,
                '#' if !found => return None,
                '\'' => {
                    let (inside, rest) = chars.as_str().split_once('\'')?;
                    word.text.push_str(inside);
                    word.quoted = true;
                    self.rest = rest;
                }
                '"' => {
                    self.rest = chars.as_str();
                    self.double_quoted(&mut word.text)?;
                    word.quoted = true;
                }
                '\\' => {
                    let escaped = chars.next()?;
                    self.rest = chars.as_str();
                    if escaped == '\n' {
                        continue;
                    }
                    word.text.push(escaped);
                    word.quoted = true;
                }
                other => {
                    word.text.push(other);
                    self.rest = chars.as_str();
                }
            }
            found = true;
        }
        Some(found.then_some(word))
    }

    fn double_quoted(&mut self, text: &mut String) -> Option<()> {
        let mut chars = self.rest.chars();
        loop {
            match chars.next()? {
                '"' => break,
                '$' | '`' => return None,
                '\\' => match chars.next()? {
                    '\n' => {}
                    escaped @ ('"' | '\\' | '$' | '`') => text.push(escaped),
                    other => text.extend(['\\', other]),
                },
                other => text.push(other),
            }
        }
        self.rest = chars.as_str();
        Some(())
    }

    fn skip_blank(&mut self, lines: bool) {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            if let Some(rest) = self.rest.strip_prefix("\\\n") {
                self.rest = rest;
            } else if let Some(rest) = self.rest.strip_prefix('\n').filter(|_| lines) {
                self.rest = rest;
            } else {
                return;
            }
        }
    }

    fn take(&mut self, operator: &str) -> bool {
        let rest = self.rest.strip_prefix(operator);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn take_pipe(&mut self) -> bool {
        let pipe = !self.rest.starts_with("|&") && self.take("|");
        self.piped |= pipe;
        pipe
    }
}

/// Words that begin something else than a command of that name.
const RESERVED: &[&str] = &[
    "!", "[", "[[", "]]", "case", "coproc", "declare", "do", "done", "elif", "else", "esac", "export", "fi", "for",
    "function", "if", "in", "local", "readonly", "select", "then", "time", "typeset", "unset", "unsetenv", "until",
    "while",
];

pub(crate) fn is_command_name(word: &str) -> bool {
    let assigns = word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        let name = name.split_once('[').map_or(name, |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    });
    !assigns && !RESERVED.contains(&word) && !word.contains(['{', '}']) && !word.chars().all(|c| c.is_ascii_digit())
}

/// A sequence in braces is expanded; `==` and `=~` belong to tests.
fn is_argument(word: &Word) -> bool {
    let expands = word.text.split_once('{').is_some_and(|(_, rest)| rest.contains("..") && rest.contains('}'));
    word.quoted || !(expands || word.text == "==" || word.text == "=~")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check_plain(script: &str, expected: &[&[&str]]) {
        let expected = expected.iter().map(|words| words.iter().map(ToString::to_string).collect()).collect();
        assert_eq!(Script::parse(script), Script::Plain(expected), "{script:?}");
    }

    #[test]
    fn plain_commands_are_taken_apart() {
        check_plain("zz a; yy b", &[&["zz", "a"], &["yy", "b"]]);
        check_plain("zz||yy&&xx|ww;", &[&["zz"], &["yy"], &["xx"], &["ww"]]);
        check_plain("\n\n zz\t1\n\nyy \n", &[&["zz", "1"], &["yy"]]);
        check_plain("zz &&\n\n yy |\nxx", &[&["zz"], &["yy"], &["xx"]]);
        check_plain("zz;\nyy", &[&["zz"], &["yy"]]);
        check_plain("zz a \\\n b", &[&["zz", "a", "b"]]);
        check_plain("zz a\\\nb", &[&["zz", "ab"]]);
        check_plain("time.sh do then", &[&["time.sh", "do", "then"]]);
    }

    #[test]
    fn words_are_what_the_program_gets() {
        check_plain(r#"zz a"b"'c' "" ''"#, &[&["zz", "abc", "", ""]]);
        check_plain(r#"zz a\ b "a\"b" "a\nb" "\\" 'a\b' \$x"#, &[&["zz", "a b", "a\"b", "a\\nb", "\\", "a\\b", "$x"]]);
        check_plain(
            r#"zz 'it'\''s' '$a' "!" "a
b""#,
            &[&["zz", "it's", "$a", "!", "a\nb"]],
        );
        check_plain(
            "zz * a?b [a-z] {a,b} ~/x a=b --x='a b' a#b ! = -",
            &[&["zz", "*", "a?b", "[a-z]", "{a,b}", "~/x", "a=b", "--x=a b", "a#b", "!", "=", "-"]],
        );
        check_plain("zz '==' é 😀 \u{a0}x", &[&["zz", "==", "é", "😀", "\u{a0}x"]]);
    }

    #[test]
    fn everything_else_is_opaque() {
        for script in [
            "",
            " ",
            ";",
            "; zz",
            "zz ;; yy",
            "zz ; ; yy",
            "zz &&",
            "&& zz",
            "zz | | yy",
            "zz\n&& yy",
            "zz |& yy",
            "zz &",
            "zz & yy",
            "zz > x",
            "zz 2>&1",
            "zz < x",
            "zz <(a)",
            "zz <<< hi",
            "(zz)",
            "zz (a)",
            "{ zz; }",
            "! zz",
            "zz && ! yy",
            "FOO=1 zz",
            "FOO=1",
            "a+=1",
            "a[0]=1 zz",
            "zz $x",
            "zz \"$x\"",
            "zz a$",
            "zz `x`",
            "zz \"`x`\"",
            "zz $(x)",
            "zz ${x}",
            "zz $'a'",
            "zz # c",
            "# c",
            "zz\n# c\nyy",
            "zz 'a",
            "zz \"a",
            "zz a\\",
            "'zz' a",
            "\"zz\" a",
            "z\"z\"",
            "\\zz a",
            "123",
            "if a; then zz; fi",
            "for i in a; do zz; done",
            "[ a ]",
            "[[ a ]]",
            "export A=1",
            "unset a",
            "time zz",
            "zz ==",
            "zz a =~ b",
            "zz {1..3}",
            "zz\rb",
            "zz\r\nyy",
            "zz\x0bb",
            "f() { zz; }",
            "zz\0",
        ] {
            assert_eq!(Script::parse(script), Script::Opaque, "{script:?}");
        }
    }

    #[test]
    fn the_script_of_a_shell_is_found() {
        let check = |argv: &[&str], expected: Option<&str>| {
            let argv: Vec<_> = argv.iter().map(ToString::to_string).collect();
            assert_eq!(script_of(&argv), expected, "{argv:?}");
        };
        check(&["bash", "-lc", "ls"], Some("ls"));
        check(&["/bin/sh", "-c", ""], Some(""));
        check(&["/x/zsh", "-lc", "a"], Some("a"));
        check(&["bash", "-c", "ls", "x"], None);
        check(&["bash", "-ic", "ls"], None);
        check(&["dash", "-c", "ls"], None);
        check(&["ls"], None);
        check(&[], None);
    }

    proptest! {
        #[test]
        fn quoted_words_come_back(words in prop::collection::vec("[^\0\r\x0b\x0c]*", 0..4)) {
            let mut all = vec!["zz".to_owned()];
            all.extend(words.into_iter().filter(|word| !["==", "=~"].contains(&word.as_str())));
            let script = crate::quote::join(&all);
            prop_assert_eq!(Script::parse(&script), Script::Plain(vec![all]));
        }

        #[test]
        fn any_text_is_parsed_without_panicking(script in "[a-z =<>|&;$'\"\\\\(){}\n#!-]*") {
            if let Script::Plain(commands) = Script::parse(&script) {
                prop_assert!(commands.iter().all(|words| !words.is_empty() && !words[0].is_empty()));
            }
        }
    }
}
