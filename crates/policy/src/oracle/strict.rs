//! Compares the strict reading with bash: a rule against any command that bash runs matches the line.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use super::generate::Numbers;
use super::shell::{FILES, ShellFamily, run};
use super::{BATCH, is_seen, lines};

/// A rule that forbids a command must apply to every line for which bash runs the command.
#[test]
fn the_strict_reading_contains_every_command_that_bash_runs() {
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
        for (line, ran) in lines.iter().zip(run("/bin/bash", ShellFamily::Bash, folder.path(), &texts, 0)) {
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
