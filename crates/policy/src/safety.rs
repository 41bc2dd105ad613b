//! Commands that are known to be read-only, and commands that are known to be dangerous. The approval policy decides
//! about all others.

use std::path::{Component, Path, PathBuf};

use crate::actions::is_lines;
use crate::repository::is_inert;
use crate::script::{Script, base_name, script_of};
use crate::suspects::{WRAPPERS, suspects};
use crate::trust::Trust;
use crate::word::Word;

/// Whether a command, or every command of the plain script that it runs, is known to be read-only.
pub fn is_known_safe(argv: &[String], trust: &Trust) -> bool {
    let mut places = WorkingFolders::new(trust.cwd);
    match script_of(argv, trust).map(Script::parse) {
        Some(Script::Plain(commands)) => commands.iter().all(|command| {
            let safe = looks_only(command, trust, &places);
            places.follow(command);
            safe
        }),
        Some(_) => false,
        None => looks_only(&argv.iter().map(|word| Word::literal(word)).collect::<Vec<_>>(), trust, &places),
    }
}

/// The folders that a command of a script may run in: where the script began, and wherever `cd` may have led.
#[derive(Clone, Debug)]
pub(crate) struct WorkingFolders {
    /// `None`: anywhere.
    folders: Option<Vec<PathBuf>>,
}

impl WorkingFolders {
    const MAX: usize = 16;

    pub fn new(cwd: &Path) -> Self {
        Self { folders: Some(vec![cwd.to_owned()]) }
    }

    /// Updates the folders for a command that precedes the others, such as `cd`.
    pub fn follow(&mut self, words: &[Word]) {
        if words.first().is_none_or(|program| program.text() != "cd") {
            return;
        }
        let folder = match words {
            [_, folder] if !folder.expands() => Some(folder.text()),
            _ => None,
        };
        let folder = folder.filter(|folder| !folder.is_empty() && !folder.starts_with('-'));
        self.folders = self.folders.take().zip(folder).and_then(|(mut folders, folder)| {
            let there: Vec<_> = folders.iter().map(|place| place.join(&folder)).collect();
            // Shells resolve `..` by the path, other programs by the folder that the path names.
            folders.extend(there.iter().map(|place| without_dots(place)).collect::<Vec<_>>());
            folders.extend(there);
            folders.sort();
            folders.dedup();
            (folders.len() <= Self::MAX).then_some(folders)
        });
    }

    /// Whether a check holds in every folder, with `folder` relative to it.
    fn all(&self, folder: &Path, check: &dyn Fn(&Path) -> bool) -> bool {
        self.folders.as_ref().is_some_and(|folders| folders.iter().all(|place| check(&place.join(folder))))
    }
}

fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(clean.pop()),
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}

/// Whether a command, or any that it may run, deletes without confirmation.
pub fn is_dangerous(argv: &[String]) -> bool {
    deletes(&suspects(argv))
}

/// Whether a command, or every command of the plain script that it runs, is known to be read-only.
pub(crate) fn looks_only(words: &[Word], trust: &Trust, places: &WorkingFolders) -> bool {
    let texts: Vec<String> = words.iter().map(Word::text).collect();
    if words.first().is_none_or(Word::expands) || !trust.is_trusted(&texts[0]) {
        return false;
    }
    let expands = words.iter().any(Word::expands);
    // A script in a script is parsed, and no deeper one.
    match script_of(&texts, trust).filter(|_| !expands).map(Script::parse) {
        Some(Script::Plain(commands)) => {
            let mut places = places.clone();
            commands.iter().all(|words| {
                let safe = program_looks_only(words, trust, &places);
                places.follow(words);
                safe
            })
        }
        _ => program_looks_only(words, trust, places),
    }
}

fn program_looks_only(words: &[Word], trust: &Trust, places: &WorkingFolders) -> bool {
    let expands = words.iter().any(Word::expands);
    let words: Vec<String> = words.iter().map(Word::text).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [program, words @ ..] = &words[..] else { return false };
    if !trust.is_trusted(program) {
        return false;
    }
    match base_name(program) {
        // No option or operand of these writes or starts anything, however a shell expands them.
        "cat" | "cd" | "cut" | "echo" | "expr" | "false" | "grep" | "head" | "id" | "ls" | "nl" | "paste" | "pwd"
        | "rev" | "seq" | "stat" | "tail" | "tr" | "true" | "uname" | "wc" | "which" | "whoami" | "numfmt" | "tac" => {
            true
        }
        _ if expands => false,
        // A second file would be written.
        "uniq" => {
            let options = words.iter().take_while(|word| **word != "--").count();
            let operands = words[..options].iter().filter(|word| !word.starts_with('-') || **word == "-").count();
            operands + words[options..].len().saturating_sub(1) < 2
        }
        "base64" => !words.iter().any(|word| base64_writes(word)),
        "find" => !words.iter().any(|word| FIND_ACTS.contains(word)),
        "rg" => !words.iter().any(|word| ripgrep_runs(word)),
        "git" => git_looks_only(words, places),
        "sed" => match words {
            ["-n", lines] => is_lines(lines),
            ["-n", lines, file] => is_lines(lines) && !file.starts_with('-'),
            _ => false,
        },
        _ => false,
    }
}

/// Options of base64 that write to a file, alone or among others.
fn base64_writes(word: &str) -> bool {
    let short = word.strip_prefix('-').is_some_and(|flags| !flags.starts_with('-') && flags.contains('o'));
    short || abbreviates(word, "--output")
}

/// Whether a word is the option or an abbreviation of it, as git and others accept, with or without a value after `=`.
fn abbreviates(word: &str, option: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    name.len() > "--".len() && option.starts_with(name)
}

/// Whether a word is the option, with or without a value after `=`.
fn is_option(word: &str, option: &str) -> bool {
    word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

const FIND_ACTS: &[&str] =
    &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0", "-fprintf"];

/// Options of ripgrep that start other programs.
fn ripgrep_runs(word: &str) -> bool {
    let short = word.strip_prefix('-').is_some_and(|flags| !flags.starts_with('-') && flags.contains('z'));
    short || word == "--search-zip" || is_option(word, "--pre") || is_option(word, "--hostname-bin")
}

fn git_looks_only(words: &[&str], places: &WorkingFolders) -> bool {
    const ELSEWHERE: &[&str] =
        &["--config-env", "--exec-path", "--git-dir", "--namespace", "--super-prefix", "--work-tree"];
    const RUNS: &[&str] = &["--output", "--ext-diff", "--textconv", "--exec", "--paginate", "--show-signature"];
    // Configuration can name programs to run; git takes it anywhere before the command.
    if words.iter().any(|word| word.starts_with("-c") || ELSEWHERE.iter().any(|option| is_option(word, option))) {
        return false;
    }
    let mut rest = words;
    let mut folder = PathBuf::new();
    let (command, arguments) = loop {
        match rest {
            ["-C", inner, after @ ..] => {
                folder.push(inner);
                rest = after;
            }
            [option, after @ ..] if option.starts_with('-') => rest = after,
            [command, after @ ..] => break (*command, after),
            [] => return false,
        }
    };
    let harmless = match command {
        "status" | "log" | "diff" | "show" => {
            !arguments.iter().any(|word| RUNS.iter().any(|option| abbreviates(word, option)))
        }
        "branch" => arguments.iter().all(|word| {
            matches!(
                *word,
                "--list" | "-l" | "--show-current" | "-a" | "--all" | "-r" | "--remotes" | "-v" | "-vv" | "--verbose"
            ) || word.starts_with("--format=")
        }),
        _ => false,
    };
    harmless && places.all(&folder, &is_inert)
}

/// Spellings of the force option of `rm`, for a word that may expand to any of them.
const FORCED: &[&str] = &["-f", "-rf", "-fr", "-Rf", "-fR", "-rfv", "-vrf", "-fv", "-vf", "--force"];

/// Whether one of these commands deletes without confirmation.
pub(crate) fn deletes(suspects: &[Vec<Word>]) -> bool {
    suspects.iter().any(|words| {
        let wrapped = words.first().is_some_and(|program| WRAPPERS.contains(&base_name(&program.text())));
        let starts = if wrapped { 0..words.len() } else { 0..1 };
        starts.into_iter().any(|start| is_forced_deletion(&words[start..]))
    })
}

fn is_forced_deletion(words: &[Word]) -> bool {
    let Some((program, words)) = words.split_first() else { return false };
    let forces = |word: &Word| {
        let text = word.text();
        let literal = text == "--force" || text.starts_with('-') && !text.starts_with("--") && text.contains('f');
        literal || word.expands() && !word.is_unknown() && FORCED.iter().any(|forced| word.can_be(forced))
    };
    let is_rm = !program.is_unknown() && program.base_name().can_be("rm");
    is_rm && words.iter().take_while(|word| word.text() != "--").any(forces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trust() -> Trust<'static> {
        let cwd = Path::new("/workspace");
        Trust { search: "/usr/bin:/bin", cwd, login_shell: None, can_write: &|path| path.starts_with("/workspace") }
    }

    fn script(script: &str) -> Vec<String> {
        ["/bin/bash", "-lc", script].map(str::to_owned).to_vec()
    }

    #[test]
    fn read_only_commands_are_known_safe() {
        for text in [
            "cat a",
            "cd a",
            "echo",
            "expr 1",
            "false",
            "grep a b",
            "id",
            "ls *",
            "nl a",
            "paste a",
            "numfmt 1",
            "tac a",
            "uniq -c a",
            "base64 -d a",
            "base64 -w0 a",
            "find . -name x",
            "find . -fprintx",
            "rg -n a",
            "rg --pre-glob x a",
            "rg 'a{2}' b",
            "git status -s",
            "git log --oneline -n 3",
            "git diff",
            "git show HEAD:x",
            "git -C x status",
            "git --no-pager log -p",
            "git branch",
            "git branch --list -a",
            "git branch --format=x",
            "sed -n 1p",
            "sed -n 1,2p a",
            "cat a | wc",
            "ls -la; pwd && whoami || true",
            "/bin/ls",
            "/usr/bin/cat a",
            "bash -c ls",
            "sh -lc 'ls && cat a'",
            "ls {a,b}",
            "cat ~/x *",
            "uniq -",
            "rg '*' a",
            "git diff HEAD~1",
            "git show 'HEAD@{1}'",
            "git log @{u}",
            "find . -name '*.rs'",
        ] {
            assert!(is_known_safe(&script(text), &trust()), "{text}");
            assert!(!is_dangerous(&script(text)), "{text}");
        }
    }

    #[test]
    fn commands_with_side_effects_are_not_known_safe() {
        for text in [
            "printf x",
            "env",
            "sort a",
            "awk x",
            "test a",
            "date",
            "ls && env",
            "cat a; rm b",
            "ls > x",
            "ls $x",
            "FOO=1 ls",
            "base64 -o x",
            "base64 -ox a",
            "base64 --output=x a",
            "find . -delete",
            "find . -exec ls",
            "find . -okdir x",
            "uniq a b",
            "rg --pre x a",
            "rg --pre=x a",
            "rg -z a",
            "rg -iz a",
            "rg --search-zip a",
            "rg --hostname-bin=x a",
            "git",
            "git --version",
            "git commit",
            "git grep a",
            "git -c a=b status",
            "git -ca=b status",
            "git log -c a",
            "git --git-dir=x status",
            "git --git-dir x status",
            "git --exec-path status",
            "git --work-tree=x status",
            "git diff --output=x",
            "git diff --output x",
            "git diff --outp=x",
            "git log --textc",
            "git log --textconv",
            "git diff --ext-diff",
            "git log --paginate",
            "git branch new",
            "git branch -d x",
            "git branch --list x",
            "git branch --format x",
            "sed 1p",
            "sed -n",
            "sed -n 1,2p a b",
            "sed -n '1,$p' a",
            "sed -n -e 1p a",
            "sed -n 1p -i",
            "sed -n 1,2pw a",
            "./ls",
            "../ls",
            "/tmp/x/ls",
            "find . -ex{ec,} rm",
            "find . {-exec,rm}",
            "rg --pr{e,}=x a",
            "find {.,-exec,touch,x,;}",
            "find . -exe{c..c} x",
            "find . -exe? x",
            "find . *",
            "find ~",
            "rg a *",
            "rg {a,--pre=x}",
            "base64 *",
            "base64 -do x",
            "uniq *",
            "uniq {a,b}",
            "uniq -- -a -b",
            "uniq - b",
            "sed -n 1p *",
            "sed -n {1p,-i}",
            "git status *",
            "git diff {a,--output=x}",
            "git log --show-signature",
            "./bash -c ls",
            "/workspace/bash -c ls",
            "l? x",
            "{ls,x}",
            "cat <<EOF\nx\nEOF",
            "bash -c 'rm a'",
            "dash -c ls",
            "LS",
            "sudo ls",
        ] {
            assert!(!is_known_safe(&script(text), &trust()), "{text}");
        }
        assert!(!is_known_safe(&[], &trust()));
    }

    #[test]
    fn forced_deletion_is_dangerous_however_it_is_written() {
        for text in [
            "rm -f x",
            "rm -rf x",
            "rm -rf",
            "rm -fr x",
            "rm -r -f x",
            "rm -Rf x",
            "rm --recursive --force x",
            "rm -v -rf x",
            "/bin/rm -rf x",
            "sudo rm -rf x",
            "sudo -n rm -f x",
            "sudo sudo rm -rf x",
            "env A=1 rm -rf x",
            "nohup rm -rf x",
            "command rm -rf x",
            "nice -n 5 rm -rf x",
            "ls | xargs -n 1 rm -f",
            "ls; rm -rf x",
            "ls && sudo rm -rf x",
            "bash -c 'rm -rf x'",
        ] {
            assert!(is_dangerous(&script(text)), "{text}");
        }
        for text in ["rm x", "rm -r x", "rm -- -f", "rmdir x", "echo rm -rf x", "sudo ls", "xargs", "git rm -f x"] {
            assert!(!is_dangerous(&script(text)), "{text}");
        }
        assert!(is_dangerous(&["rm", "-rf", "x"].map(str::to_owned)));
        assert!(!is_dangerous(&[]));
    }
}
