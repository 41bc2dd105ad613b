//! The exact reading of shell scripts: scripts of plain commands, joined by `&&`, `||`, `;`, `|` and line ends, are
//! split into exactly the commands that a shell runs. [`Word::expands`] is whether a shell may still replace a word.
//! Any other script is opaque. [`suspects`](crate::suspects) is the strict reading, for rules that forbid.

use crate::heredoc::{Heredoc, heredoc};
use crate::trust::Trust;
use crate::word::{Word, WordPiece};

/// A parsed script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Script {
    /// The words of each command, in order.
    Plain(Vec<Vec<Word>>),
    /// One command that is fed a here-document.
    Heredoc(Heredoc),
    /// Anything else.
    Opaque,
}

/// The script of `bash`, `zsh` or `sh` with `-c` or `-lc`. `None` for a shell that is not trusted: it may run the
/// script in another way.
pub fn script_of<'a>(argv: &'a [String], trust: &Trust) -> Option<&'a str> {
    named_script_of(argv).filter(|_| trust.is_trusted(&argv[0]))
}

/// The script of a shell, whatever the path of the shell.
pub(crate) fn named_script_of(argv: &[String]) -> Option<&str> {
    let [shell, flag, script] = argv else { return None };
    let known = matches!(base_name(shell), "bash" | "zsh" | "sh") && matches!(flag.as_str(), "-c" | "-lc");
    known.then_some(script)
}

pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl Script {
    pub fn parse(script: &str) -> Self {
        match plain(script) {
            Some(commands) => Self::Plain(commands.into_iter().map(|command| command.words).collect()),
            None => heredoc(script).map_or(Self::Opaque, Self::Heredoc),
        }
    }
}

/// A command of a plain script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SimpleCommand {
    /// What connects it to the command before it.
    pub operator: ListOperator,
    pub words: Vec<Word>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListOperator {
    /// `;`, a line end, or nothing at the start.
    Then,
    And,
    Or,
    Pipe,
}

/// The commands of a plain script; `None` for any other.
pub(crate) fn plain(script: &str) -> Option<Vec<SimpleCommand>> {
    ScriptParser { rest: script }.plain()
}

pub(crate) struct ScriptParser<'a> {
    pub rest: &'a str,
}

impl ScriptParser<'_> {
    fn plain(mut self) -> Option<Vec<SimpleCommand>> {
        let mut commands = Vec::new();
        let mut operator = ListOperator::Then;
        self.skip_blank(true);
        while !self.rest.is_empty() {
            commands.push(SimpleCommand { operator, words: self.command()? });
            self.skip_blank(false);
            let connected = [("&&", ListOperator::And), ("||", ListOperator::Or), ("|", ListOperator::Pipe)];
            if let Some((_, found)) = connected.iter().find(|(sign, _)| self.take(sign)) {
                operator = *found;
                self.skip_blank(true);
                if self.rest.is_empty() {
                    return None;
                }
            } else if self.take(";") || self.rest.starts_with('\n') {
                operator = ListOperator::Then;
                self.skip_blank(true);
            } else if !self.rest.is_empty() {
                return None;
            }
        }
        (!commands.is_empty()).then_some(commands)
    }

    fn command(&mut self) -> Option<Vec<Word>> {
        let name = self.word()??;
        if !is_command_name(&name) {
            return None;
        }
        let mut words = vec![name];
        loop {
            self.skip_blank(false);
            match self.word()? {
                Some(word) if is_argument(&word) => words.push(word),
                Some(_) => return None,
                None => return Some(words),
            }
        }
    }

    /// The next word, `Some(None)` where there is none, `None` where it is not a literal one.
    pub fn word(&mut self) -> Option<Option<Word>> {
        let mut word = Word::default();
        let mut found = false;
        loop {
            let mut chars = self.rest.chars();
            let Some(c) = chars.next() else { break };
            match c {
                ' ' | '\t' | '\n' | ';' | '|' | '&' => break,
                '<' | '>' | '(' | ')' | '$' | '`' => return None,
                // Some of these look like blanks, but a shell takes them for a part of a word; others have a
                // meaning inside of some shells.
                c if c.is_control() => return None,
                '#' if !found => return None,
                '\'' => {
                    let (inside, rest) = chars.as_str().split_once('\'')?;
                    if inside.chars().any(is_unfit) {
                        return None;
                    }
                    word.push(WordPiece::Quote);
                    inside.chars().for_each(|c| word.push(WordPiece::Quoted(c)));
                    self.rest = rest;
                }
                '"' => {
                    self.rest = chars.as_str();
                    word.push(WordPiece::Quote);
                    self.double_quoted(&mut word)?;
                }
                '\\' => {
                    let escaped = chars.next()?;
                    self.rest = chars.as_str();
                    if escaped == '\n' {
                        continue;
                    }
                    if is_unfit(escaped) {
                        return None;
                    }
                    word.push(WordPiece::Quoted(escaped));
                }
                other => {
                    word.push(WordPiece::Bare(other));
                    self.rest = chars.as_str();
                }
            }
            found = true;
        }
        Some(found.then_some(word))
    }

    fn double_quoted(&mut self, word: &mut Word) -> Option<()> {
        let mut chars = self.rest.chars();
        loop {
            match chars.next()? {
                '"' => break,
                '$' | '`' => return None,
                c if is_unfit(c) => return None,
                '\\' => match chars.next()? {
                    '\n' => {}
                    escaped @ ('"' | '\\' | '$' | '`') => word.push(WordPiece::Quoted(escaped)),
                    other if is_unfit(other) => return None,
                    other => [WordPiece::Quoted('\\'), WordPiece::Quoted(other)]
                        .into_iter()
                        .for_each(|piece| word.push(piece)),
                },
                other => word.push(WordPiece::Quoted(other)),
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
        let rest = self.rest.strip_prefix(operator).filter(|rest| operator != "|" || !rest.starts_with('&'));
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

/// Characters that make a script opaque even in quotes: NUL cannot be passed in arguments, and bash uses the other two
/// internally.
fn is_unfit(c: char) -> bool {
    matches!(c, '\0' | '\x01' | '\x7f')
}

/// Words at the start of a command that are not names of programs in bash, dash or zsh, or after which words are parsed
/// by other rules.
pub(crate) const RESERVED: &[&str] = &[
    "!",
    "-",
    "[",
    "[[",
    "]]",
    "alias",
    "case",
    "coproc",
    "declare",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "esac",
    "eval",
    "export",
    "fi",
    "float",
    "for",
    "foreach",
    "function",
    "if",
    "in",
    "integer",
    "let",
    "local",
    "nocorrect",
    "noglob",
    "readonly",
    "repeat",
    "select",
    "then",
    "time",
    "typeset",
    "unset",
    "unsetenv",
    "until",
    "while",
];

/// Whether an unquoted word at the start of a command is the name of a program, exactly as it stands. `%1` would be a
/// job, and a name that begins with `-` is an option to most that pass it on.
pub(crate) fn is_command_name(word: &Word) -> bool {
    let text = word.text();
    !word.is_quoted()
        && !word.expands()
        && !is_assignment(&text)
        && !RESERVED.contains(&text.as_str())
        && !text.contains(['{', '}', '~'])
        && !text.starts_with(['%', '-'])
        && !text.chars().all(|c| c.is_ascii_digit())
}

pub(crate) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        let name = name.split_once('[').map_or(name, |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// A sequence in braces is expanded; `==` and `=~` belong to tests.
fn is_argument(word: &Word) -> bool {
    let text = word.text();
    !word.may_hold_sequence() && (word.is_quoted() || !matches!(text.as_str(), "==" | "=~"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check_plain(script: &str, expected: &[&[&str]]) {
        let Script::Plain(commands) = Script::parse(script) else { panic!("{script:?} is plain") };
        let texts: Vec<Vec<_>> = commands.iter().map(|words| words.iter().map(Word::text).collect()).collect();
        assert_eq!(texts, expected, "{script:?}");
    }

    #[test]
    fn a_plain_script_is_split_into_commands() {
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
    fn quotes_and_escapes_are_removed_from_words() {
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
    fn scripts_with_expansions_redirections_or_keywords_are_opaque() {
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
            "%1",
            "-x a",
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
            "zz ''{1..3}",
            "zz 'a'{_..a}yy{_..a}",
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
    fn the_script_argument_of_a_shell_is_found() {
        let login_shell = Some(Path::new("/home/me/bin/zsh"));
        let trust =
            Trust { search: "/bin", cwd: Path::new("/w"), login_shell, can_write: &|path| path.starts_with("/w") };
        let check = |argv: &[&str], expected: Option<&str>| {
            let argv: Vec<_> = argv.iter().map(ToString::to_string).collect();
            assert_eq!(script_of(&argv, &trust), expected, "{argv:?}");
        };
        check(&["bash", "-lc", "ls"], Some("ls"));
        check(&["/bin/sh", "-c", ""], Some(""));
        check(&["/home/me/bin/zsh", "-lc", "a"], Some("a"));
        check(&["/home/me/bin/bash", "-lc", "a"], None);
        check(&["/w/bash", "-c", "ls"], None);
        check(&["./bash", "-c", "ls"], None);
        check(&["bash", "-c", "ls", "x"], None);
        check(&["bash", "-ic", "ls"], None);
        check(&["dash", "-c", "ls"], None);
        check(&["ls"], None);
        check(&[], None);
    }

    proptest! {
        #[test]
        fn quoted_words_parse_to_the_same_words(words in prop::collection::vec("[^\0\x01\x7f]*", 0..4)) {
            let mut all = vec!["zz".to_owned()];
            all.extend(words.into_iter().filter(|word| !["==", "=~"].contains(&word.as_str())));
            let script = crate::quote::join(&all);
            let Script::Plain(commands) = Script::parse(&script) else { panic!("{script:?} is plain") };
            prop_assert_eq!(commands.len(), 1);
            prop_assert!(!commands[0].iter().any(Word::expands));
            prop_assert_eq!(commands[0].iter().map(Word::text).collect::<Vec<_>>(), all);
        }

        #[test]
        fn any_text_is_parsed_without_panicking(script in "[a-z =<>|&;$'\"\\\\(){}\n#!-]*") {
            if let Script::Plain(commands) = Script::parse(&script) {
                prop_assert!(commands.iter().all(|words| !words.is_empty() && !words[0].text().is_empty()));
            }
        }
    }
}
