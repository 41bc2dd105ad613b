//! Rules that users write about commands and hosts: `*.rules` files, what they say, and how a new one is
//! added. All files add up; of all rules that match a command the strictest counts.

mod amend;
mod arguments;
mod evaluate;
mod host;
mod load;
mod starlark;

use std::collections::BTreeMap;

pub use amend::{AmendError, append_network_rule, append_prefix_rule};
pub use host::{NetworkDecision, NetworkProtocol, NetworkRule};
pub use load::{LoadError, Loaded, Problem, load};
pub use starlark::Position;

use crate::quote::join;
use crate::script::base_name;
use starlark::{Failure, Span};

/// In order of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleDecision {
    Allow,
    Prompt,
    Forbidden,
}

/// What the files of a thread say together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    prefixes: Vec<PrefixRule>,
    network: Vec<NetworkRule>,
    /// The paths that count as a program of that name.
    executables: BTreeMap<String, Vec<String>>,
    /// Whether a file could not be understood, so that a rule may be missing.
    pub incomplete: bool,
}

/// A rule about commands that begin with certain words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixRule {
    /// Each word, as the alternatives for it.
    pub pattern: Vec<Vec<String>>,
    pub decision: RuleDecision,
    pub justification: Option<String>,
}

/// A rule that applies to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match<'a> {
    pub rule: &'a PrefixRule,
    words: &'a [String],
    base_name: bool,
}

impl PrefixRule {
    pub fn allow(words: &[String]) -> Self {
        let pattern = words.iter().map(|word| vec![word.clone()]).collect();
        Self { pattern, decision: RuleDecision::Allow, justification: None }
    }

    fn matches(&self, first: &str, rest: &[String]) -> bool {
        let words = std::iter::once(first).chain(rest.iter().map(String::as_str));
        rest.len() + 1 >= self.pattern.len()
            && self.pattern.iter().zip(words).all(|(alternatives, word)| alternatives.iter().any(|a| a == word))
    }
}

impl Match<'_> {
    /// The words of the command that the rule is about, as one line.
    pub fn prefix(&self) -> String {
        let mut words: Vec<&str> = self.words[..self.rule.pattern.len()].iter().map(String::as_str).collect();
        if self.base_name {
            words[0] = base_name(words[0]);
        }
        join(&words)
    }
}

impl Rules {
    /// What one file says; an error names its place, too.
    pub fn parse(source: &str) -> Result<Self, String> {
        evaluate::evaluate(source).map_err(|Failure { message, span: Span { start, .. } }| {
            format!("{}:{}: {message}", start.line, start.column)
        })
    }

    /// Every rule that applies to a command. A rule about a bare name also means programs of that name by
    /// their whole path, unless a rule about the path itself applies.
    pub fn matches<'a>(&'a self, command: &'a [String]) -> Vec<Match<'a>> {
        let Some((program, rest)) = command.split_first() else { return Vec::new() };
        let found = |first: &str, base_name: bool| -> Vec<_> {
            let rules = self.prefixes.iter().filter(|rule| rule.matches(first, rest));
            rules.map(|rule| Match { rule, words: command, base_name }).collect()
        };
        let literal = found(program, false);
        if !literal.is_empty() || !program.starts_with('/') {
            return literal;
        }
        let name = base_name(program);
        match self.executables.get(name) {
            Some(paths) if !paths.contains(program) => Vec::new(),
            _ => found(name, true),
        }
    }

    /// Adds a rule for as long as these live.
    pub fn add(&mut self, rule: PrefixRule) {
        self.prefixes.push(rule);
    }

    pub fn add_network(&mut self, rule: NetworkRule) {
        self.network.push(rule);
    }

    /// The rules about hosts, in the order of the files.
    pub fn network(&self) -> &[NetworkRule] {
        &self.network
    }

    fn extend(&mut self, other: Self) {
        self.prefixes.extend(other.prefixes);
        self.network.extend(other.network);
        for (name, paths) in other.executables {
            self.executables.entry(name).or_default().extend(paths);
        }
        self.incomplete |= other.incomplete;
    }
}

/// Text as it stands in a rules file.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn rules_match_the_first_words() {
        let rules = evaluate::evaluate(
            r#"
prefix_rule(pattern=["git", ["push", "fetch"]], decision="prompt")
prefix_rule(["git"], "forbidden", justification="no git")
prefix_rule(pattern=["/usr/bin/zz"], decision="prompt")
prefix_rule(pattern=["zz"])
host_executable(name="git", paths=["/usr/bin/git"])
"#,
        )
        .unwrap();
        let check = |command: &str, expected: &[(RuleDecision, &str)]| {
            let command = words(command);
            let seen: Vec<_> = rules.matches(&command).iter().map(|m| (m.rule.decision, m.prefix())).collect();
            let expected: Vec<_> = expected.iter().map(|(decision, prefix)| (*decision, prefix.to_string())).collect();
            assert_eq!(seen, expected, "{command:?}");
        };
        use RuleDecision::*;
        check("git push x", &[(Prompt, "git push"), (Forbidden, "git")]);
        check("git pull", &[(Forbidden, "git")]);
        check("/usr/bin/git fetch", &[(Prompt, "git fetch"), (Forbidden, "git")]);
        check("/opt/git push", &[]);
        check("/usr/bin/zz a", &[(Prompt, "/usr/bin/zz")]);
        check("/opt/zz a", &[(Allow, "zz")]);
        check("./zz", &[]);
        check("zzz", &[]);
        assert_eq!(rules.matches(&[]), []);
    }
}
