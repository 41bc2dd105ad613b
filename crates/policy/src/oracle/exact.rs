//! Compares the exact reading with bash and sh: a shell runs exactly the words of a line that is parsed as plain.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::expected::{Expected, all_agree};
use super::generate::Generator;
use super::shell::{FILES, POSIX_NAMES, ShellFamily, run};
use super::vocabulary::NAMES;
use super::{BATCH, is_seen, lines};
use crate::word::Word;

#[test]
fn bash_runs_exactly_the_words_of_plain_lines() {
    check("/bin/bash", ShellFamily::Bash, 0x9e37_79b9_7f4a_7c15, lines());
}

#[test]
fn sh_runs_exactly_the_words_of_plain_lines() {
    check("/bin/sh", ShellFamily::Posix, 0xd1b5_4a32_d192_ed03, lines());
}

fn differences(shell: &str, family: ShellFamily, folder: &Path, lines: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    for status in [0, 1] {
        let ran = run(shell, family, folder, lines, status);
        for (index, line) in lines.iter().enumerate() {
            let expected = Expected::of(line).expect("only such lines are run");
            let expected = expected.run(status);
            let left = ran.get(index).cloned().unwrap_or_default();
            let argv = ["bash", "-c", line].map(str::to_owned);
            if !all_agree(family, &expected, &left) || !left.iter().all(|words| is_seen(&argv, words)) {
                let expected: Vec<Vec<_>> =
                    expected.iter().map(|words| words.iter().map(Word::text).collect()).collect();
                wrong.push(format!("{line:?}\n  expected {expected:?}\n  ran      {:?}", ran.get(index)));
            }
        }
    }
    wrong
}

fn check(shell: &str, family: ShellFamily, seed: u64, total: usize) {
    let missing = Command::new(shell).args(["-c", ":"]).status().is_err();
    if missing {
        println!("skipped: there is no {shell}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("files");
    fs::create_dir(&place).unwrap();
    let mut generator = Generator::new(seed);
    let (mut tried, mut read) = (0, BTreeMap::<&str, usize>::new());
    let mut wrong = Vec::new();
    while tried < total && wrong.len() < 10 {
        let lines: Vec<_> = (0..BATCH.min(total - tried)).map(|_| generator.line()).collect();
        tried += lines.len();
        let recorded = |name: &str| match family {
            // A path that is no function would have to be a file.
            ShellFamily::Bash => !name.contains('/') || NAMES.contains(&name),
            ShellFamily::Posix => POSIX_NAMES.contains(&name),
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
        // Changes of one batch to the files must not affect the next.
        fs::remove_dir_all(&place).unwrap();
        fs::create_dir(&place).unwrap();
        FILES.iter().for_each(|file| fs::write(place.join(file), "").unwrap());
        wrong.extend(differences(shell, family, folder.path(), &lines));
    }
    println!("{shell}: {tried} lines, of which were run: {read:?}");
    assert!(wrong.is_empty(), "{} differences, such as\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
    assert!(read.values().sum::<usize>() > total / 20 && read.len() == 2, "too few lines are read at all: {read:?}");
}
