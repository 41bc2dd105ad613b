//! Adding a rule that a user has just agreed to. Files are only ever appended to, under a lock.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::host::host;
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

/// Allows commands that begin with these words.
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

/// Adds a line unless it is there. Whoever holds the lock reads and writes; others wait.
fn append(file: &Path, line: &str) -> Result<(), AmendError> {
    let write = || -> io::Result<()> {
        if let Some(folder) = file.parent() {
            loomd_private::create_dir_all(folder)?;
        }
        let mut opened: File = loomd_private::options().read(true).append(true).create(true).open(file)?;
        opened.lock()?;
        let mut text = String::new();
        opened.read_to_string(&mut text)?;
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
    fn rules_are_appended_once() {
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
    fn a_missing_line_end_is_added_first() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("default.rules");
        fs::write(&file, "# mine").unwrap();
        append_prefix_rule(&file, &["ls".to_owned()]).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "# mine\nprefix_rule(pattern=[\"ls\"], decision=\"allow\")\n");
    }
}
