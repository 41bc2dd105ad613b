//! A real shell as the judge of how scripts are read: what is called plain must be exactly what the shell runs.
//! Lines are generated to mislead, and all that are not opaque are run by the shell, with every command
//! replaced by a function that records its arguments. `LOOMD_ORACLE_LINES` asks for more lines than usual.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Script;
use crate::rules::{PrefixRule, RuleDecision, Rules};
use crate::script::{Operator, SimpleCommand, plain};
use crate::suspects::suspects;
use crate::word::Word;

/// How many lines are tried when nobody says otherwise.
const LINES: usize = 20_000;
/// How many lines one shell runs.
const BATCH: usize = 2_000;
/// What is recorded at the end of a command and of a line.
const COMMAND: &str = "<end-of-command>";
const LINE: &str = "<end-of-line>";
/// What is recorded for a newline.
const NEWLINE: &str = "<newline>";

/// Names of commands, many of them builtins. None of them is a program.
const NAMES: &[&str] = &[
    "zz",
    "yy",
    "xx",
    "git",
    "find",
    "rm",
    "ls",
    "cd",
    "echo",
    "exit",
    "exec",
    "set",
    "true",
    "false",
    "test",
    "read",
    "printf",
    "trap",
    "source",
    ":",
    ".",
    "./zz",
    "/x/bin/rm",
    "a-b",
    "z.z",
    "z+",
    "return",
    "break",
    "shift",
    "z\\\nz",
];
/// Names that begin something else, or nothing.
const WILD_NAMES: &[&str] = &[
    "if", "then", "do", "time", "!", "[", "[[", "]]", "{", "}", "case", "for", "while", "function", "select", "export",
    "eval", "alias", "let", "coproc", "in", "x=1", "x=", "x+=1", "x[0]=1", "x[a b]=1", "1", "'zz'", "\\zz", "z\"z\"",
    "z*", "{zz,yy}", "~", "~/zz", "a[b", "i\\\nf", "f()", "-", "=zz", "''",
];
/// What arguments are put together of.
const PIECES: &[&str] = &[
    "a",
    "b",
    "-exec",
    "-delete",
    "-rf",
    "--",
    "x=1",
    "=",
    "~",
    "~/x",
    "a~b",
    "HEAD~1",
    "@{u}",
    "''~",
    "x=''~",
    "x\\=~",
    "a:~",
    "x=~",
    ":~",
    "*",
    "?",
    "[a]",
    "[!a]",
    "[",
    "]",
    "a*",
    "-exe?",
    "-e*",
    "{a,b}",
    "{a,}",
    "{,}",
    "{}",
    "{a}",
    "{",
    "}",
    "{a,b{c,d}}",
    "a{b,c}d",
    "{{a,b}",
    "{a,b}}",
    "{,a}{b,c}",
    "{a\\,b,c}",
    "{'a,b',c}",
    "{a..}",
    "x{a,b",
    "{},a}",
    "{{},a}",
    "{a,{}",
    "{a,b}{",
    ",",
    "..",
    ",}",
    "{,",
    "'a b'",
    "''",
    "\"\"",
    "\"a b\"",
    "\"a'b\"",
    "'a\"b'",
    "\"\\\"\"",
    "\"\\a\"",
    "\"\\\\\"",
    "'\\'",
    "\\ ",
    "\\a",
    "\\\\",
    "\\'",
    "\\\"",
    "\\{a,b}",
    "{a,b\\}",
    "\\*",
    "\"*\"",
    "'{a,b}'",
    "\"{\"a,b}",
    "{a\",\"b}",
    "\"~\"",
    "'it'\\''s'",
    "\\\n",
    "a#b",
    "\\#",
    "!",
    "!!",
    "^a^b",
    "%1",
    "@",
    "+",
    ".",
    "/",
    "é",
    "😀",
    "\u{a0}",
    "\u{2003}",
    "\u{feff}",
    "\u{3000}",
    "\"\x02\"",
    "'\n'",
    "\"\n\"",
    "\"\\\n\"",
    "'$x'",
    "\\$x",
    "\"\\$x\"",
    "1",
    "12",
    "a=b",
    "a[0]=1",
    "a[b",
    "a+=1",
    "in",
    "do",
    "then",
    "]]",
    "-",
    "--x=*",
    "--y={a,b}",
    "é*",
    "a\\*b",
    "a\\?*",
    "[\\]]",
    "\\[a]",
    "[a\\]",
    "\\;",
    "\\&",
    "\\|",
    "\\<",
    "\\(",
    "'\r'",
    "\"\t\"",
    "\\\t",
    "'#'",
    "if",
    "{a,*}",
    "{*,~}",
    "a\"\"",
    "\"\"\"\"",
    "-{e,x}ec",
    "'`zz`'",
    "\\`",
    "é\\é",
    "'\u{85}'",
];
/// What makes a line opaque, as a rule.
const WILD_PIECES: &[&str] = &[
    "#",
    "==",
    "=~",
    "{1..3}",
    "{a..c}",
    "''{c..c}",
    "''{a..3}",
    "''{a..C}",
    "\"\"{01..3}",
    "{a b,c}",
    "\\\r",
    "\u{85}",
    "\x01",
    "\x7f",
    "\x0b",
    "\x0c",
    "\r",
    "\x1b",
    "\x02",
    "'\x01'",
    "'\x7f'",
    "\"\x01\"",
    "$",
    "$x",
    "${x}",
    "$(zz)",
    "`zz`",
    "$'a'",
    "$\"a\"",
    "\"$x\"",
    "\"`zz`\"",
    "(",
    ")",
    "()",
    "<",
    ">",
    "2>&1",
    ">f",
    "<f",
    "<<<a",
    "<(zz)",
    "&",
    "|&",
    ";;",
    "'",
    "\"",
    "\\",
    "&>f",
    ">|f",
    "\"$\"",
    "a$",
    "@(a|b)",
    "!(a)",
];
const BLANKS: &[&str] = &[" ", "  ", "\t", " \t ", " \\\n", "\\\n ", " \\\n "];
const WILD_BLANKS: &[&str] = &["\\\n", "\r", "\u{a0}", "\x0b", "\x0c"];
const OPERATORS: &[&str] = &[
    ";", "; ", " && ", "&&", " || ", "||", " | ", "|", "\n", "\n\n", " ;\n", "&&\n", "|\n\t", "||\\\n", ";\\\n",
    "\n \\\n",
];
const WILD_OPERATORS: &[&str] = &[
    "|\\\n|", "&\\\n&", ";;", "; ;", "&", " & ", "|&", " # c\n", "\n# c\n", "\r\n", "\n&& ", ";|", "&&;", "| |",
    " #\\\n",
];
const DELIMITERS: &[&str] = &["EOF", "'EOF'", "\"EOF\""];
const WILD_DELIMITERS: &[&str] = &[
    "\\EOF",
    "\\\\EOF",
    "\"'EOF'\"",
    "\"EOF'",
    "E\"OF\"",
    "'E'OF",
    "E\\OF",
    "''EOF",
    "EOF''",
    "E-F",
    "$EOF",
    "EOF;zz",
    "EOF#",
    "EOF\\",
    "EOF\\\n",
    "{EOF,x}",
    "EO*",
    "'EOF';zz",
    "'EOF'>f",
    "EOF\\ ",
    "$'EOF'",
    "\"E\\OF\"",
    "'EOF\n'",
    "EOF\u{a0}",
];
const AFTER: &[&str] = &["", " a", " >f", " 2>&1", " <f", " b >g c", " >&2", " >>f", "\t", " > f a", " 1>f 2>g", " f"];
const WILD_AFTER: &[&str] = &[
    " 2>&1;zz", ";zz", " | zz", " && zz", " {a,b}", " *", " 'a'", " # c", " \\\n a", " &", " 2>&1a", " >&f", " >f;zz",
    " &>f", " 2>&-", " >a>b", " a>b", " >f&zz", " >\\f", " 2 >f", " >", " <<A", "\r", " <&0", " >&2;zz",
];
const BODIES: &[&str] = &[
    "",
    "x\n",
    "\tx\n",
    "EOF \n",
    " EOF\n",
    "'EOF'\n",
    "zz a\n",
    "'\n",
    "EOF'\n",
    "\"EOF\"\n",
    "EOFx\n",
    "#\n",
    "\tEOFx\n",
];
const WILD_BODIES: &[&str] = &[
    "$x\n",
    "$(zz)\n",
    "E\\\nOF\nzz b\n",
    "\tEOF\nzz\n",
    "\\EOF\n",
    "`zz`\n",
    "EOF\r\n",
    "a\\\n",
    "\\\\\n",
    "EOF\nzz\n",
    "\\\nEOF\nzz\n",
    "x\\\nEOF\n",
    "EOF\\\n\nzz\n",
    "$(zz\nEOF\n",
    "${x:-\nEOF\nzz\n",
];
const ENDINGS: &[&str] = &["EOF", "EOF\n", "EOF\n\n", "EOF\n \t\n"];
const WILD_ENDINGS: &[&str] = &[
    "\tEOF\n",
    "EOF\nzz c\n",
    "'EOF'\n",
    "EOF\\\n",
    "\\EOF\n",
    "EOF\n\u{a0}",
    "",
    "EOF \n",
    "EOF\n#\n",
    "EOF;zz",
    "EOF\n\\\n",
    "EOF\n;",
];

/// Files that globs find.
const FILES: &[&str] =
    &["-exec", "-delete", "-rf", "a", "b", "ab", "a b", "*", "?", "[a]", "{a,b}", "aXb", "push", "f"];

/// A small generator of numbers, always the same ones.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// Puts lines together. In a wild line every choice may be one that makes it opaque.
struct Generator {
    numbers: Numbers,
    wild: bool,
}

impl Generator {
    fn of(&mut self, tame: &[&'static str], wild: &[&'static str]) -> &'static str {
        if self.wild && self.numbers.one_in(5) { self.numbers.of(wild) } else { self.numbers.of(tame) }
    }

    fn command(&mut self, line: &mut String) {
        line.push_str(self.of(NAMES, WILD_NAMES));
        if self.wild && self.numbers.one_in(12) {
            line.push_str(self.of(PIECES, WILD_PIECES));
        }
        for _ in 0..self.numbers.below(5) {
            line.push_str(if self.numbers.one_in(3) { self.of(BLANKS, WILD_BLANKS) } else { " " });
            for _ in 0..1 + self.numbers.below(3) {
                line.push_str(self.of(PIECES, WILD_PIECES));
            }
        }
    }

    fn line(&mut self) -> String {
        self.wild = self.numbers.one_in(2);
        let mut line = String::new();
        if self.numbers.one_in(10) {
            line.push_str(self.of(BLANKS, WILD_BLANKS));
        }
        if self.numbers.one_in(5) {
            line.push_str(self.of(NAMES, WILD_NAMES));
            for _ in 0..self.numbers.below(3) {
                line.push_str(self.numbers.of(&[" a", " -rf", " --x", " é", " a=b", " 1", " -"]));
            }
            let sign = if self.wild {
                self.numbers.of(&["<<", " 2<<", " <<<", "\t<<-\t", " <<\\\n"])
            } else {
                self.numbers.of(&[" <<", " <<-", " << "])
            };
            let (delimiter, after) = (self.of(DELIMITERS, WILD_DELIMITERS), self.of(AFTER, WILD_AFTER));
            let _ = writeln!(line, "{sign}{delimiter}{after}");
            for _ in 0..self.numbers.below(3) {
                line.push_str(self.of(BODIES, WILD_BODIES));
            }
            line.push_str(self.of(ENDINGS, WILD_ENDINGS));
            return line;
        }
        self.command(&mut line);
        for _ in 0..self.numbers.below(4) {
            line.push_str(self.of(OPERATORS, WILD_OPERATORS));
            self.command(&mut line);
        }
        if self.numbers.one_in(6) {
            line.push_str(self.of(OPERATORS, WILD_OPERATORS));
        }
        line
    }
}

/// What a shell is expected to run.
enum Expected {
    Plain(Vec<SimpleCommand>),
    Heredoc(Vec<Word>),
}

impl Expected {
    fn of(line: &str) -> Option<Self> {
        if let Some(commands) = plain(line) {
            return Some(Self::Plain(commands));
        }
        match Script::parse(line) {
            Script::Heredoc(heredoc) => Some(Self::Heredoc(heredoc.words)),
            _ => None,
        }
    }

    /// The commands that run when every command ends with this status.
    fn run(&self, status: u8) -> Vec<&[Word]> {
        let runs = |operator: Operator| match operator {
            Operator::Then | Operator::Pipe => true,
            Operator::And => status == 0,
            Operator::Or => status != 0,
        };
        match self {
            Self::Heredoc(words) => vec![words],
            Self::Plain(commands) => {
                let mut found: Vec<&[Word]> = Vec::new();
                let mut last = true;
                for SimpleCommand { operator, words } in commands {
                    // A pipe belongs to the command before it, run or not.
                    last = if *operator == Operator::Pipe { last } else { runs(*operator) };
                    found.extend(last.then_some(&words[..]));
                }
                found
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Bash,
    /// Without braces, and with names of functions that are identifiers.
    Posix,
}

/// Whether what ran is what was expected: words that do not expand exactly, braces exactly, globs and the like as
/// any number of words.
fn agrees(kind: Kind, words: &[Word], ran: &[String]) -> bool {
    let expanded: Vec<Option<Word>> = words
        .iter()
        .flat_map(|word| match (kind, word.braces()) {
            (_, _) if !word.expands() => vec![Some(word.clone())],
            (Kind::Bash, Some(words)) => words.into_iter().map(Some).collect(),
            (Kind::Bash, None) | (Kind::Posix, _) => vec![None],
        })
        .collect();
    fits(&expanded, ran)
}

/// Commands of a pipe run at the same time, in any order.
fn all_agree(kind: Kind, expected: &[&[Word]], ran: &[Vec<String>]) -> bool {
    let Some((first, rest)) = expected.split_first() else { return ran.is_empty() };
    (0..ran.len()).any(|at| {
        let mut left = ran.to_vec();
        agrees(kind, first, &left.remove(at)) && all_agree(kind, rest, &left)
    })
}

fn fits(expected: &[Option<Word>], ran: &[String]) -> bool {
    match expected.split_first() {
        None => ran.is_empty(),
        Some((Some(word), rest)) if !word.has_globs() => {
            ran.split_first().is_some_and(|(first, ran)| *first == word.text() && fits(rest, ran))
        }
        Some((_, rest)) => (0..=ran.len()).any(|taken| fits(rest, &ran[taken..])),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The commands that a shell runs for each line.
fn run(shell: &str, kind: Kind, folder: &Path, lines: &[&str], status: u8) -> Vec<Vec<Vec<String>>> {
    let mut script = String::new();
    match kind {
        Kind::Bash => {
            // At a newline it would be written in two pieces, and another command of a pipe in between.
            let record = format!(r#"builtin printf '%s\0' "${{@//$'\n'/{NEWLINE}}}" '{COMMAND}' >&9"#);
            let _ = writeln!(script, "rec() {{ {record}; builtin return {status}; }}");
            let _ = writeln!(script, "command_not_found_handle() {{ rec \"$@\"; }}");
            for name in NAMES.iter().filter(|name| !name.contains('\n')) {
                let _ = writeln!(
                    script,
                    "builtin eval {} 2>&8",
                    quoted(&format!("function {name} {{ rec {} \"$@\"; }}", quoted(name)))
                );
            }
            let _ = writeln!(
                script,
                "for name in $(compgen -b); do case $name in builtin|printf) ;; *) builtin eval \"function $name {{ rec $name \\\"\\$@\\\"; }}\" 2>&8;; esac; done"
            );
            let _ = writeln!(script, "function printf {{ rec printf \"$@\"; }}");
        }
        Kind::Posix => {
            let record = format!(r#"command printf '%s\0' "$@" '{COMMAND}' >&9"#);
            let _ = writeln!(script, "rec() {{ {record}; return {status}; }}");
            for name in POSIX_NAMES {
                let _ = writeln!(script, "{name}() {{ rec {name} \"$@\"; }}");
            }
        }
    }
    let (eval, mark) = match kind {
        Kind::Bash => ("builtin eval", format!(r"builtin printf '%s\0' '{LINE}' >&9")),
        Kind::Posix => ("eval", format!(r"command printf '%s\0' '{LINE}' >&9")),
    };
    for line in lines {
        let _ = writeln!(script, "{eval} {} </dev/null >/dev/null\n{mark}", quoted(line));
    }
    let file = folder.join("script");
    let records = folder.join("records");
    fs::write(&file, script).unwrap();
    let place = folder.join("files");
    let redirected = format!("exec 9>{} 8>/dev/null; . {}", records.display(), file.display());
    let mut process = Command::new(shell);
    process.args(["-c", &redirected]).current_dir(place).env_clear();
    process.envs([("PATH", "/nonexistent"), ("HOME", "/home/of/user"), ("LC_ALL", "C.UTF-8")]);
    process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    process.status().unwrap();
    let text = String::from_utf8_lossy(&fs::read(&records).unwrap()).into_owned();
    let mut all = Vec::new();
    let (mut commands, mut words) = (Vec::new(), Vec::new());
    for field in text.split_terminator('\0') {
        match field {
            LINE => all.push(std::mem::take(&mut commands)),
            COMMAND => commands.push(std::mem::take(&mut words)),
            word => words.push(word.replace(NEWLINE, "\n")),
        }
    }
    all
}

/// Names that dash takes for those of functions.
const POSIX_NAMES: &[&str] = &["zz", "yy", "xx", "git", "find", "rm", "ls", "echo", "test", "read", "cd"];

fn differences(shell: &str, kind: Kind, folder: &Path, lines: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    for status in [0, 1] {
        let ran = run(shell, kind, folder, lines, status);
        for (index, line) in lines.iter().enumerate() {
            let expected = Expected::of(line).expect("only such lines are run");
            let expected = expected.run(status);
            let left = ran.get(index).cloned().unwrap_or_default();
            let argv = ["bash", "-c", line].map(str::to_owned);
            if !all_agree(kind, &expected, &left) || !left.iter().all(|words| is_seen(&argv, words)) {
                let expected: Vec<Vec<_>> =
                    expected.iter().map(|words| words.iter().map(Word::text).collect()).collect();
                wrong.push(format!("{line:?}\n  expected {expected:?}\n  ran      {:?}", ran.get(index)));
            }
        }
    }
    wrong
}

fn check(shell: &str, kind: Kind, seed: u64, total: usize) {
    let missing = Command::new(shell).args(["-c", ":"]).status().is_err();
    if missing {
        println!("skipped: there is no {shell}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("files");
    fs::create_dir(&place).unwrap();
    let mut generator = Generator { numbers: Numbers(seed), wild: false };
    let (mut tried, mut read) = (0, BTreeMap::<&str, usize>::new());
    let mut wrong = Vec::new();
    while tried < total && wrong.len() < 10 {
        let lines: Vec<_> = (0..BATCH.min(total - tried)).map(|_| generator.line()).collect();
        tried += lines.len();
        let recorded = |name: &str| match kind {
            // A path that is no function would have to be a file.
            Kind::Bash => !name.contains('/') || NAMES.contains(&name),
            Kind::Posix => POSIX_NAMES.contains(&name),
        };
        let fit = |line: &&str| {
            Expected::of(line).is_some_and(|expected| {
                [0, 1].iter().all(|status| expected.run(*status).iter().all(|words| recorded(&words[0].text())))
            })
        };
        let lines: Vec<_> = lines.iter().map(String::as_str).filter(fit).collect();
        for line in &lines {
            let form =
                if matches!(Expected::of(line), Some(Expected::Heredoc(_))) { "here-documents" } else { "plain" };
            *read.entry(form).or_default() += 1;
        }
        // What one batch does to the files must not matter to the next.
        fs::remove_dir_all(&place).unwrap();
        fs::create_dir(&place).unwrap();
        FILES.iter().for_each(|file| fs::write(place.join(file), "").unwrap());
        wrong.extend(differences(shell, kind, folder.path(), &lines));
    }
    println!("{shell}: {tried} lines, of which were run: {read:?}");
    assert!(wrong.is_empty(), "{} differences, such as\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
    assert!(read.values().sum::<usize>() > total / 20 && read.len() == 2, "too few lines are read at all: {read:?}");
}

/// Ways to begin and end a line that hide its commands from the exact reading, not from the strict one. None runs
/// anything beside the line, where its records could come late.
const STRICT_WAYS: &[(&str, &str)] = &[
    ("", ""),
    ("x=1 ", ""),
    ("x=1 y={a,b} ", ""),
    ("! ", ""),
    ("{ ", "; }"),
    ("( ", " )"),
    ("if true; then ", "; fi"),
    ("for x in a b; do ", "; done"),
    ("case a in a) ", ";; esac"),
    ("f() { ", "; }; f"),
    (">f ", " 2>&1"),
    ("", " >f <f"),
    ("$unset ", ""),
    ("echo $(", ")"),
    ("echo \"$(", ")\""),
    ("echo `", "`"),
    ("echo ${unset:-$(", ")}"),
    ("# c\n", " # d"),
    ("zz # c\n", ""),
    ("zz <<EOF\n'\nEOF\n", ""),
    ("zz <<'E F'\n$(yy)\nE F\n", ""),
    ("zz <<-\\EOF\n\tx\n\tEOF\n", ""),
    ("zz <<EOF\n$(", ")\nEOF"),
    ("[[ a ]] && ", ""),
    ("zz >f 2>&1 | ", ""),
    ("time ", ""),
];
const STRICT_NAMES: &[&str] = &[
    "zz",
    "'zz'",
    "\\zz",
    "z\"z\"",
    "{zz,yy}",
    "$'zz'",
    "$'z\\x7a'",
    "$'\\172z'",
    "$'\\u007az'",
    "$\"zz\"",
    "z''z",
    "''zz",
    "z\\\nz",
    "{z,y}z",
    "z{z,y}",
    "zz$unset",
    "{z..z}z",
    "$unset zz",
];
const STRICT_PIECES: &[&str] = &[
    "a",
    "''",
    "'a b'",
    "{a,b}",
    "{a..c}",
    "{3..1}",
    "{1..10..3}",
    "{01..3}",
    "{a..C}",
    "{-1..1}",
    "*",
    "a*",
    "[a]",
    "?",
    "~",
    "$unset",
    "\"$unset\"",
    "$'a\\tb'",
    "$'\\'a'",
    "\\*",
    "\"*\"",
    "\\{a,b}",
    "$(yy)",
    "\"$(yy a)\"",
    "`yy`",
    "${unset}",
    "${unset:-b}",
    "$((1+1))",
    "\"a$unset\"",
    "-e{x,y}",
    "@{u}",
    "x=~",
    "$unset$unset",
    "$'\\cA'",
    "$'\\e'",
    "$",
    "a$",
];

/// Whatever a shell runs, a rule that forbids it must apply to the line.
#[test]
fn bash_runs_nothing_that_the_strict_reading_does_not_see() {
    if Command::new("/bin/bash").args(["-c", ":"]).status().is_err() {
        println!("skipped: there is no /bin/bash");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("files");
    fs::create_dir(&place).unwrap();
    let mut numbers = Numbers(0xa076_1d64_78bd_642f);
    let (mut tried, mut commands, mut wrong) = (0, 0, Vec::new());
    let total = lines() / 4;
    while tried < total && wrong.len() < 10 {
        let lines: Vec<_> = (0..BATCH.min(total - tried))
            .map(|_| {
                let (start, end) = STRICT_WAYS[numbers.below(STRICT_WAYS.len())];
                let mut line = format!("{start}{}", numbers.of(STRICT_NAMES));
                for _ in 0..numbers.below(4) {
                    let _ = write!(
                        line,
                        " {}{}",
                        numbers.of(STRICT_PIECES),
                        if numbers.one_in(3) { numbers.of(STRICT_PIECES) } else { "" }
                    );
                }
                line + end
            })
            .collect();
        tried += lines.len();
        FILES.iter().for_each(|file| fs::write(place.join(file), "").unwrap());
        let texts: Vec<_> = lines.iter().map(String::as_str).collect();
        for (line, ran) in lines.iter().zip(run("/bin/bash", Kind::Bash, folder.path(), &texts, 0)) {
            commands += ran.len();
            let argv = ["bash", "-c", line].map(str::to_owned);
            wrong.extend(
                ran.iter().filter(|words| !is_seen(&argv, words)).map(|words| format!("{line:?} runs {words:?}")),
            );
        }
    }
    println!("{tried} lines ran {commands} commands");
    assert!(wrong.is_empty(), "{} unseen, such as\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
    assert!(commands > total, "too few commands ran at all");
}

/// Whether a rule against the command applies to an argument list.
fn is_seen(argv: &[String], command: &[String]) -> bool {
    let pattern = command.iter().take(4).map(|word| vec![word.clone()]).collect();
    let mut rules = Rules::default();
    rules.add(PrefixRule { pattern, decision: RuleDecision::Forbidden, justification: None });
    !rules.restricting(&suspects(argv)).is_empty()
}

fn lines() -> usize {
    std::env::var("LOOMD_ORACLE_LINES").ok().and_then(|lines| lines.parse().ok()).unwrap_or(LINES)
}

#[test]
fn bash_runs_exactly_the_words_that_are_called_plain() {
    check("/bin/bash", Kind::Bash, 0x9e37_79b9_7f4a_7c15, lines());
}

#[test]
fn sh_runs_exactly_the_words_that_are_called_plain() {
    check("/bin/sh", Kind::Posix, 0xd1b5_4a32_d192_ed03, lines());
}
