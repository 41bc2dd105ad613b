//! Commands that only format the output of others.

use super::classify::{awk_file, sed_file};

pub(super) fn only_formats(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[0] {
        "wc" | "tr" | "cut" | "sort" | "uniq" | "tee" | "column" | "yes" | "printf" => true,
        "xargs" => !changes_files(&words[1..]),
        "awk" => awk_file(&words[1..]).is_none(),
        "sed" => sed_file(&words[1..]).is_none(),
        "head" | "tail" => match words[1..] {
            [] => true,
            [flag] => flag.starts_with('-'),
            ["-n" | "-c", count] => is_count(count, words[0] == "tail"),
            _ => false,
        },
        _ => false,
    }
}

/// Digits; those of `tail` may have a plus in front.
pub(super) fn is_count(text: &str, plus: bool) -> bool {
    let digits = text.strip_prefix('+').filter(|_| plus).unwrap_or(text);
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
}

/// Whether the command of `xargs` edits files in place.
fn changes_files(mut words: &[&str]) -> bool {
    while let [flag, rest @ ..] = words {
        words = match *flag {
            "--" => {
                words = rest;
                break;
            }
            "-E" | "-e" | "-I" | "-L" | "-n" | "-P" | "-s" => rest.get(1..).unwrap_or_default(),
            flag if flag.starts_with('-') => rest,
            _ => break,
        };
    }
    let Some((program, words)) = words.split_first() else { return false };
    match *program {
        "sed" => words.iter().any(|word| word.starts_with("-i") || word.starts_with("--in-place")),
        "perl" | "ruby" => words.iter().any(|word| word.starts_with("-i") || word.starts_with("-pi")),
        "rg" => words.contains(&"--replace"),
        _ => false,
    }
}
