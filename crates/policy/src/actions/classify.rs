//! Classifies one command by its name and arguments.

use super::formatting::is_count;

pub(super) enum ActionKind<'a> {
    Read(&'a str),
    List(Option<&'a str>),
    /// The pattern of a search, and its path.
    Search(Option<&'a str>, Option<&'a str>),
}

/// `None` when the command is unknown.
pub(super) fn classify(words: &[String]) -> Option<ActionKind<'_>> {
    let (name, words) = words.split_first()?;
    let operands = |valued: &[&str]| operands(words, valued);
    let first = |valued: &[&str]| ActionKind::List(operands(valued).first().copied());
    let only = |valued: &[&str]| match operands(valued)[..] {
        [file] => Some(ActionKind::Read(file)),
        _ => None,
    };
    match name.as_str() {
        "ls" => Some(first(&["-I", "-w", "--block-size", "--color", "--format", "--quoting-style", "--time-style"])),
        "eza" | "exa" => Some(first(&["-I", "--color", "--ignore-glob", "--sort", "--time-style"])),
        "tree" => Some(first(&["-I", "-L", "-P", "--charset", "--filelimit", "--sort"])),
        "du" => Some(first(&["-B", "-d", "--block-size", "--exclude", "--max-depth", "--time-style"])),
        "rg" | "rga" | "ripgrep-all" => Some(ripgrep(words)),
        "grep" | "egrep" | "fgrep" => Some(grep(words)),
        "git" => match words.split_first()? {
            (command, words) if command == "grep" => Some(grep(words)),
            (command, words) if command == "ls-files" => {
                Some(ActionKind::List(self::operands(words, &["--exclude", "--exclude-from"]).first().copied()))
            }
            _ => None,
        },
        "ag" | "ack" | "pt" => {
            let found =
                operands(&["-G", "-g", "--file-search-regex", "--ignore-dir", "--ignore-file", "--path-to-ignore"]);
            Some(ActionKind::Search(found.first().copied(), found.get(1).copied()))
        }
        "fd" => Some(fd(&operands(&["-E", "-e", "-t", "--exclude", "--extension", "--search-path", "--type"]))),
        "find" => Some(find(words)),
        "cat" | "more" => only(&[]),
        "bat" | "batcat" => {
            only(&["--language", "--line-range", "--map-syntax", "--style", "--tabs", "--terminal-width", "--theme"])
        }
        "less" => {
            only(&["-P", "-j", "-p", "-x", "-y", "-z", "--jump-target", "--pattern", "--prompt", "--shift", "--tabs"])
        }
        "head" | "tail" => first_lines(words, name == "tail"),
        "nl" => operands(&["-b", "-i", "-s", "-v", "-w"]).first().map(|file| ActionKind::Read(file)),
        "awk" => awk_file(words).map(ActionKind::Read),
        "sed" => sed_file(words).map(ActionKind::Read),
        name if is_python(name) && walks(words) => Some(ActionKind::List(None)),
        _ => None,
    }
}

/// The words that are no options, nor the values of those options that take one.
pub(super) fn operands<'a, S: AsRef<str>>(words: &'a [S], valued: &[&str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut words = words.iter().map(AsRef::as_ref);
    while let Some(word) = words.next() {
        if word == "--" {
            found.extend(words);
            break;
        } else if valued.contains(&word) {
            words.next();
        } else if !word.starts_with('-') {
            found.push(word);
        }
    }
    found
}

fn ripgrep(words: &[String]) -> ActionKind<'_> {
    const VALUED: &[&str] = &[
        "-A",
        "-B",
        "-C",
        "-g",
        "-m",
        "-t",
        "--context",
        "--glob",
        "--iglob",
        "--max-count",
        "--max-depth",
        "--type",
        "--type-add",
        "--type-not",
    ];
    // A word after `--` that begins with a dash is not used as the pattern.
    let found: Vec<_> = operands(words, VALUED).into_iter().filter(|word| !word.starts_with('-')).collect();
    if words.iter().any(|word| word == "--files") {
        ActionKind::List(found.first().copied())
    } else {
        ActionKind::Search(found.first().copied(), found.get(1).copied())
    }
}

fn grep(words: &[String]) -> ActionKind<'_> {
    const PATTERN: &[&str] = &["-e", "-f", "--file", "--regexp"];
    const VALUED: &[&str] =
        &["-A", "-B", "-C", "-m", "--after-context", "--before-context", "--context", "--max-count"];
    let options = words.iter().take_while(|word| *word != "--").count();
    let pattern = words[..options].iter().position(|word| PATTERN.contains(&word.as_str()));
    let pattern = pattern.and_then(|at| words.get(at + 1)).map(String::as_str);
    let found = operands(words, &[PATTERN, VALUED].concat());
    match pattern {
        Some(pattern) => ActionKind::Search(Some(pattern), found.first().copied()),
        None => ActionKind::Search(found.first().copied(), found.get(1).copied()),
    }
}

fn fd<'a>(found: &[&'a str]) -> ActionKind<'a> {
    match *found {
        [] => ActionKind::List(None),
        [path] if path == "." || path == ".." || path.contains('/') => ActionKind::List(Some(path)),
        [query] => ActionKind::Search(Some(query), None),
        [query, path, ..] => ActionKind::Search(Some(query), Some(path)),
    }
}

fn find(words: &[String]) -> ActionKind<'_> {
    let path = words.iter().find(|word| !word.starts_with('-') && !matches!(word.as_str(), "!" | "(" | ")"));
    let path = path.map(String::as_str);
    let test = words.iter().position(|word| matches!(word.as_str(), "-name" | "-iname" | "-path" | "-regex"));
    match test.and_then(|at| words.get(at + 1)) {
        Some(query) => ActionKind::Search(Some(query), path),
        None => ActionKind::List(path),
    }
}

/// `head` and `tail`, with nothing or a number of lines first.
fn first_lines(words: &[String], plus: bool) -> Option<ActionKind<'_>> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let rest = match words[..] {
        [file] if !file.starts_with('-') => return Some(ActionKind::Read(file)),
        ["-n", count, ref rest @ ..] if is_count(count, plus) => rest,
        [flag, ref rest @ ..] if flag.strip_prefix("-n").is_some_and(|count| is_count(count, plus)) => rest,
        _ => return None,
    };
    rest.iter().find(|word| !word.starts_with('-')).map(|file| ActionKind::Read(file))
}

/// The file that an `awk` program reads.
pub(super) fn awk_file<S: AsRef<str>>(words: &[S]) -> Option<&str> {
    let found = operands(words, &["-F", "-f", "-v", "--file"]);
    let program = words.iter().any(|word| matches!(word.as_ref(), "-f" | "--file"));
    found.get(if program { 0 } else { 1 }).copied()
}

/// The file of which `sed -n` prints lines.
pub(super) fn sed_file<S: AsRef<str>>(words: &[S]) -> Option<&str> {
    let silent = words.iter().any(|word| word.as_ref() == "-n");
    if !silent || !words.iter().any(|word| is_lines(word.as_ref())) {
        return None;
    }
    let found = operands(words, &["-e", "-f", "--expression", "--file"]);
    match found[..] {
        [lines, ref rest @ ..] if is_lines(lines) => rest.first().copied(),
        _ => found.first().copied(),
    }
}

/// `5p` or `5,10p`.
pub(crate) fn is_lines(text: &str) -> bool {
    let Some(range) = text.strip_suffix('p') else { return false };
    range.splitn(2, ',').all(|number| is_count(number, false))
}

fn is_python(name: &str) -> bool {
    matches!(name, "python" | "python2" | "python3") || name.starts_with("python2.") || name.starts_with("python3.")
}

fn walks(words: &[String]) -> bool {
    const CALLS: &[&str] =
        &["os.walk", "os.listdir", "os.scandir", "glob.glob", "glob.iglob", "pathlib.Path", ".rglob("];
    let flag = words.iter().position(|word| word == "-c");
    let program = flag.and_then(|at| words.get(at + 1));
    program.is_some_and(|program| CALLS.iter().any(|call| program.contains(call)))
}
