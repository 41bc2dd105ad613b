//! Rules of the user about commands and hosts, in `*.rules` files: parsing, matching, and appending. The rules of all
//! files are merged; of all rules that match a command the strictest one decides.

mod amend;
mod arguments;
mod evaluate;
mod host;
mod load;
mod starlark;

use std::collections::{BTreeMap, HashSet};

pub use amend::{AmendError, append_network_rule, append_prefix_rule};
pub use host::{NetworkDecision, NetworkProtocol, NetworkRule};
pub use load::{LoadError, LoadedRules, RulesProblem, load};
pub use starlark::Position;

use crate::quote::join;
use crate::script::base_name;
use crate::trust::{Origin, Trust};
use crate::word::Word;
use starlark::{Failure, Span};

/// In order of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleDecision {
    Allow,
    Prompt,
    Forbidden,
}

/// The rules of all files of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    prefixes: Vec<PrefixRule>,
    network: Vec<NetworkRule>,
    /// The paths of programs by name, from `host_executable`.
    executables: BTreeMap<String, Vec<String>>,
    /// Whether a file could not be loaded, so that a rule may be missing.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleMatch<'a> {
    pub rule: &'a PrefixRule,
    /// The words of the rule that the command begins with.
    words: Vec<&'a str>,
    /// Whether no sandboxed command can replace the program.
    pub fixed: bool,
}

impl PrefixRule {
    pub fn allow(words: &[String]) -> Self {
        let pattern = words.iter().map(|word| vec![word.clone()]).collect();
        Self { pattern, decision: RuleDecision::Allow, justification: None }
    }

    /// The words of the rule that a command begins with, if it does exactly.
    fn begins(&self, first: &str, rest: &[Word]) -> Option<Vec<&str>> {
        if rest.len() + 1 < self.pattern.len() {
            return None;
        }
        let texts = rest.iter().map(|word| (!word.expands()).then(|| word.text()));
        let words = std::iter::once(Some(first.to_owned())).chain(texts);
        let same = |(alternatives, word): (&'_ Vec<String>, Option<String>)| -> Option<usize> {
            let word = word?;
            alternatives.iter().position(|alternative| *alternative == word)
        };
        let chosen: Option<Vec<usize>> = self.pattern.iter().zip(words).map(same).collect();
        Some(chosen?.iter().zip(&self.pattern).map(|(at, alternatives)| alternatives[*at].as_str()).collect())
    }

    /// The words of the rule that a command may begin with after expansion by a shell. At least one of them must be
    /// known: a command of unknown words does not match every rule.
    fn may_begin(&self, words: &[Word]) -> Option<Vec<&str>> {
        let mut found = Vec::new();
        let mut tried = HashSet::new();
        self.may_go_on(words, 0, 0, false, &mut found, &mut tried).then_some(found)
    }

    fn may_go_on<'a>(
        &'a self,
        words: &[Word],
        at: usize,
        next: usize,
        shown: bool,
        found: &mut Vec<&'a str>,
        tried: &mut HashSet<(usize, usize, bool)>,
    ) -> bool {
        let Some(alternatives) = self.pattern.get(at) else { return shown };
        let Some(word) = words.get(next) else { return false };
        if !tried.insert((at, next, shown)) {
            return false;
        }
        let candidate =
            |alternative: &&String| word.can_be(alternative) || at == 0 && word.base_name().can_be(alternative);
        if let Some(alternative) = alternatives.iter().find(candidate) {
            let shown = shown || !word.is_unknown();
            found.push(alternative);
            if self.may_go_on(words, at + 1, next + 1, shown, found, tried)
                || word.is_plural() && self.may_go_on(words, at + 1, next, shown, found, tried)
            {
                return true;
            }
            found.pop();
        }
        word.may_vanish() && self.may_go_on(words, at, next + 1, shown, found, tried)
    }
}

impl RuleMatch<'_> {
    /// The words of the rule that the command begins with, as one line.
    pub fn prefix(&self) -> String {
        join(&self.words)
    }
}

impl Rules {
    /// Parses one file. The error has its position.
    pub fn parse(source: &str) -> Result<Self, String> {
        evaluate::evaluate(source).map_err(|Failure { message, span: Span { start, .. } }| {
            format!("{}:{}: {message}", start.line, start.column)
        })
    }

    /// Every rule that allows a command, whose words must match exactly. A rule about a bare name also applies to
    /// programs of that name by their full path, unless a rule about the path itself applies: to those that
    /// `host_executable` lists for the name, else to those in the folders of the system. No rule about a name applies
    /// to a program that a sandboxed command may have written.
    pub(crate) fn allowing(&self, command: &[Word], trust: &Trust) -> Vec<RuleMatch<'_>> {
        let Some((program, rest)) = command.split_first() else { return Vec::new() };
        let program = match program.expands() {
            true => return Vec::new(),
            false => program.text(),
        };
        let origin = trust.origin(&program);
        if !program.contains('/') && origin == Origin::Unknown {
            return Vec::new();
        }
        let found = |first: &str| -> Vec<_> {
            let rules = self.prefixes.iter().filter(|rule| rule.decision == RuleDecision::Allow);
            let fixed = origin == Origin::Fixed;
            rules.filter_map(|rule| Some(RuleMatch { rule, words: rule.begins(first, rest)?, fixed })).collect()
        };
        let literal = found(&program);
        if !literal.is_empty() || !program.starts_with('/') {
            return literal;
        }
        let name = base_name(&program);
        let meant = match self.executables.get(name) {
            Some(paths) => paths.contains(&program),
            None => trust.is_trusted(&program),
        };
        if meant { found(name) } else { Vec::new() }
    }

    /// Every rule that forbids one of these commands or prompts for it, whatever the path of its program. A word that a
    /// shell expands matches everything that it may become.
    pub(crate) fn restricting(&self, suspects: &[Vec<Word>]) -> Vec<RuleMatch<'_>> {
        let rules = self.prefixes.iter().filter(|rule| rule.decision != RuleDecision::Allow);
        rules
            .filter_map(|rule| {
                let words = suspects.iter().find_map(|words| rule.may_begin(words))?;
                Some(RuleMatch { rule, words, fixed: true })
            })
            .collect()
    }

    /// Every rule that applies to the exact words of a command, as for the examples in a file.
    pub fn matches(&self, command: &[String]) -> Vec<RuleMatch<'_>> {
        let Some((program, rest)) = command.split_first() else { return Vec::new() };
        let rest: Vec<_> = rest.iter().map(|word| Word::literal(word)).collect();
        let found = |first: &str| -> Vec<_> {
            let matching = |rule| Some(RuleMatch { rule, words: PrefixRule::begins(rule, first, &rest)?, fixed: true });
            self.prefixes.iter().filter_map(matching).collect()
        };
        let literal = found(program);
        if !literal.is_empty() || !program.starts_with('/') {
            return literal;
        }
        let name = base_name(program);
        match self.executables.get(name) {
            Some(paths) if !paths.contains(program) => Vec::new(),
            _ => found(name),
        }
    }

    /// Adds a rule in memory only.
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

/// Text as a literal of a rules file.
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
    fn prefix_rules_match_the_first_words_of_a_command() {
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
