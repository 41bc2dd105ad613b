//! Adds a rule that the user approved to a rules file. Files are only appended to, under a lock.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::host::host;
use super::load::MAX_FILE_BYTES;
use super::{NetworkRule, quoted};

#[derive(Debug, thiserror::Error)]
pub enum AmendError {
    #[error("prefix rule requires at least one token")]
    EmptyPrefix,
    #[error("{0}")]
    InvalidHost(String),
    #[error("failed to update {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Appends a rule that allows commands that begin with these words.
pub fn append_prefix_rule(file: &Path, words: &[String]) -> Result<(), AmendError> {
    if words.is_empty() {
        return Err(AmendError::EmptyPrefix);
    }
    let pattern: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    append(file, &format!("prefix_rule(pattern=[{}], decision=\"allow\")", pattern.join(", ")))
}

pub fn append_network_rule(file: &Path, rule: &NetworkRule) -> Result<(), AmendError> {
    let host = host(&rule.host).map_err(AmendError::InvalidHost)?;
    let mut line = format!(
        "network_rule(host={}, protocol={}, decision={}",
        quoted(&host),
        quoted(rule.protocol.name()),
        quoted(rule.decision.name())
    );
    if let Some(why) = &rule.justification {
        line += &format!(", justification={}", quoted(why));
    }
    append(file, &(line + ")"))
}

/// Appends a line unless the file has it already. Holds a lock on the file from reading to writing, so that two
/// processes do not append the same line.
fn append(file: &Path, line: &str) -> Result<(), AmendError> {
    let write = || -> io::Result<()> {
        if let Some(folder) = file.parent() {
            loomd_private::create_dir_all(folder)?;
        }
        let mut opened = loomd_regular::open_to_append(file)?;
        opened.lock()?;
        let mut text = String::new();
        // A longer file would not be loaded.
        (&opened).take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if text.lines().any(|known| known == line) {
            return Ok(());
        }
        let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        opened.write_all(format!("{separator}{line}\n").as_bytes())
    };
    write().map_err(|source| AmendError::Io { path: file.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{NetworkDecision, NetworkProtocol};
    use super::*;

    #[test]
    fn an_appended_rule_is_not_duplicated() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("rules/default.rules");
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        append_prefix_rule(&file, &words(&["touch", "f.txt"])).unwrap();
        append_prefix_rule(&file, &words(&["touch", "f.txt"])).unwrap();
        append_prefix_rule(&file, &words(&["echo", "a\"b\n"])).unwrap();
        let rule = NetworkRule {
            host: "H.com".into(),
            protocol: NetworkProtocol::Https,
            decision: NetworkDecision::Deny,
            justification: Some("no".into()),
        };
        append_network_rule(&file, &rule).unwrap();
        let expected = r#"prefix_rule(pattern=["touch", "f.txt"], decision="allow")
prefix_rule(pattern=["echo", "a\"b\n"], decision="allow")
network_rule(host="h.com", protocol="https", decision="deny", justification="no")
"#;
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
        assert!(super::super::evaluate::evaluate(expected).is_ok());
        assert!(matches!(append_prefix_rule(&file, &[]), Err(AmendError::EmptyPrefix)));
    }

    #[test]
    fn a_rules_file_that_is_no_regular_file_or_too_large_is_refused_at_once() {
        let home = tempfile::tempdir().unwrap();
        let append = |name: &str| append_prefix_rule(&home.path().join(name), &["ls".to_owned()]).unwrap_err();
        let fifo = std::process::Command::new("mkfifo").arg(home.path().join("fifo")).status().unwrap();
        assert!(fifo.success());
        assert!(append("fifo").to_string().ends_with("is not a regular file"));
        fs::write(home.path().join("large"), vec![b'\n'; MAX_FILE_BYTES as usize + 1]).unwrap();
        assert!(append("large").to_string().ends_with("file too large"));
    }

    #[test]
    fn a_missing_final_newline_is_added_before_a_rule() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("default.rules");
        fs::write(&file, "# mine").unwrap();
        append_prefix_rule(&file, &["ls".to_owned()]).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "# mine\nprefix_rule(pattern=[\"ls\"], decision=\"allow\")\n");
    }
}
