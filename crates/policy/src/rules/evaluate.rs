//! Evaluates a rules file: each call of `prefix_rule`, `network_rule` or `host_executable` adds a rule.

use std::thread;

use super::arguments::{bind, decision, examples, executables, justification, list, pattern, required, text};
use super::host::{NetworkDecision, NetworkProtocol, NetworkRule, host};
use super::starlark::{Failure, Host, HostValue, Span, run};
use super::{PrefixRule, Rules};
use crate::quote::join;

/// The most calls of one file.
const MAX_RULES: usize = 10_000;

/// The stack of the evaluation: enough for the deepest file that is accepted, independent of the caller's stack.
const STACK_BYTES: usize = 8 * 1024 * 1024;

pub(super) fn evaluate(source: &str) -> Result<Rules, Failure> {
    let evaluated = thread::scope(|scope| {
        let thread = thread::Builder::new().name("rules".into()).stack_size(STACK_BYTES);
        thread.spawn_scoped(scope, || evaluate_here(source)).map(|running| running.join())
    });
    match evaluated {
        Ok(Ok(rules)) => rules,
        Ok(Err(_)) => Err(Failure { message: "the file could not be carried out".into(), span: Span::default() }),
        Err(error) => Err(Failure { message: error.to_string(), span: Span::default() }),
    }
}

fn evaluate_here(source: &str) -> Result<Rules, Failure> {
    let mut file = RulesFile::default();
    run(source, &mut file)?;
    file.check_examples()?;
    Ok(file.rules)
}

#[derive(Default)]
struct RulesFile {
    rules: Rules,
    examples: Vec<Example>,
    calls: usize,
}

/// A command that a rule must, or must not, apply to.
struct Example {
    rule: PrefixRule,
    command: Vec<String>,
    applies: bool,
    call: Span,
}

impl Host for RulesFile {
    const FUNCTIONS: &'static [&'static str] = &["prefix_rule", "network_rule", "host_executable"];

    fn call(&mut self, function: &str, arguments: &[(Option<String>, HostValue)], call: Span) -> Result<(), String> {
        self.calls += 1;
        if self.calls > MAX_RULES {
            return Err("too many rules".into());
        }
        match function {
            "prefix_rule" => {
                let names = ["pattern", "decision", "match", "not_match", "justification"];
                let [words, how, matches, others, why] = bind(function, arguments, names)?;
                let rule = PrefixRule {
                    pattern: pattern(required(words, function, "pattern")?)?,
                    decision: decision(how)?,
                    justification: justification(why)?,
                };
                for (given, applies) in [(matches, true), (others, false)] {
                    for command in examples(given, if applies { "match" } else { "not_match" })? {
                        self.examples.push(Example { rule: rule.clone(), command, applies, call });
                    }
                }
                self.rules.add(rule);
            }
            "network_rule" => {
                let names = ["host", "protocol", "decision", "justification"];
                let [to, protocol, how, why] = bind(function, arguments, names)?;
                self.rules.add_network(NetworkRule {
                    host: host(text(required(to, function, "host")?, "host")?)?,
                    protocol: NetworkProtocol::parse(text(required(protocol, function, "protocol")?, "protocol")?)?,
                    decision: NetworkDecision::parse(text(required(how, function, "decision")?, "decision")?)?,
                    justification: justification(why)?,
                });
            }
            "host_executable" => {
                let [name, paths] = bind(function, arguments, ["name", "paths"])?;
                let name = text(required(name, function, "name")?, "name")?;
                let paths = executables(name, list(required(paths, function, "paths")?, "paths")?)?;
                self.rules.executables.insert(name.to_owned(), paths);
            }
            _ => return Err(format!("Variable `{function}` not found")),
        }
        Ok(())
    }
}

impl RulesFile {
    /// Checks the examples of each rule, with the `host_executable`s of the whole file.
    fn check_examples(&self) -> Result<(), Failure> {
        for Example { rule, command, applies, call } in &self.examples {
            let alone =
                Rules { prefixes: vec![rule.clone()], executables: self.rules.executables.clone(), ..Rules::default() };
            if alone.matches(command).is_empty() == *applies {
                let wanted = if *applies { "match" } else { "not match" };
                let message = format!("expected example to {wanted} its rule: {}", join(command));
                return Err(Failure { message, span: *call });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The patterns and decisions of a file.
    fn read(source: &str) -> Result<Vec<String>, String> {
        let rules = Rules::parse(source)?;
        Ok(rules.prefixes.iter().map(|rule| format!("{:?} {:?}", rule.decision, rule.pattern)).collect())
    }

    #[test]
    fn a_rules_file_yields_its_rules() {
        for (source, expected) in [
            ("", &[][..]),
            ("# c\n\npass\n\"\"\"doc\nstring\"\"\"\n", &[]),
            ("prefix_rule(pattern=[\"zz\"])", &[r#"Allow [["zz"]]"#]),
            (
                "prefix_rule(\n  pattern = ['a', [\"b\", 'c'],],\n  decision = 'prompt', # c\n)\n",
                &[r#"Prompt [["a"], ["b", "c"]]"#],
            ),
            ("prefix_rule([\"a\"], \"forbidden\", [], [], \"why\")", &[r#"Forbidden [["a"]]"#]),
            ("x = ['a'] + [\"b\" + 'c']\nprefix_rule(x)", &[r#"Allow [["a"], ["bc"]]"#]),
            ("n='a'\nprefix_rule([f\"{n}-b\"])", &[r#"Allow [["a-b"]]"#]),
            (r#"prefix_rule([r"a\n", "z\x7a", "\u00e9"])"#, &[r#"Allow [["a\\n"], ["zz"], ["é"]]"#]),
            (
                "for p in ['a', 'b']:\n  # c\n\n  prefix_rule([p])\n  prefix_rule([p, 'x'])\nprefix_rule(['c'])",
                &[
                    r#"Allow [["a"]]"#,
                    r#"Allow [["a"], ["x"]]"#,
                    r#"Allow [["b"]]"#,
                    r#"Allow [["b"], ["x"]]"#,
                    r#"Allow [["c"]]"#,
                ],
            ),
            ("for p in ['a']: prefix_rule([p]); prefix_rule(['b'])", &[r#"Allow [["a"]]"#, r#"Allow [["b"]]"#]),
            ("[prefix_rule([p]) for p in ['a', 'b']]", &[r#"Allow [["a"]]"#, r#"Allow [["b"]]"#]),
            ("prefix_rule(['a', 'b'], match=['a b c', ['a', 'b']], not_match=['a'])", &[r#"Allow [["a"], ["b"]]"#]),
        ] {
            assert_eq!(read(source), Ok(expected.iter().map(ToString::to_string).collect()), "{source}");
        }
    }

    #[test]
    fn errors_carry_their_position() {
        for (source, expected) in [
            ("prefix_rule(pattern=[])", "1:1: invalid pattern element: pattern cannot be empty"),
            ("prefix_rule(['a', []])", "1:1: invalid pattern element: pattern alternatives cannot be empty"),
            (
                "prefix_rule([5])",
                "1:1: invalid pattern element: pattern element must be a string or list of strings (got int)",
            ),
            ("prefix_rule('a')", "1:1: Type of parameter `pattern` doesn't match, expected `list`, actual `string`"),
            ("\n prefix_rule(['a'])", "2:2: Parse error: unexpected indentation here"),
            ("prefix_rule(['a'], decision='bogus')", "1:1: invalid decision: bogus"),
            (
                "prefix_rule(['a'], decision=None)",
                "1:1: Type of parameter `decision` doesn't match, expected `str`, actual `NoneType`",
            ),
            ("prefix_rule(['a'], justification=' ')", "1:1: invalid rule: justification cannot be empty"),
            ("prefix_rule(['a'], match=['b'])", "1:1: expected example to match its rule: b"),
            ("prefix_rule(['a'], not_match=['a b'])", "1:1: expected example to not match its rule: a b"),
            ("prefix_rule(['a'], match=[\"a '\"])", "1:1: invalid example: example string has invalid shell syntax"),
            ("prefix_rule(['a'], bogus=1)", "1:1: Found `bogus` extra named parameter(s) for call to prefix_rule"),
            (
                "prefix_rule(['a'], pattern=['b'])",
                "1:1: Argument `pattern` occurs more than once in call to prefix_rule",
            ),
            ("prefix_rule()", "1:1: Missing parameter `pattern` for call to `prefix_rule`"),
            ("\nbogus()", "2:1: Variable `bogus` not found"),
            ("prefix_rule(x)", "1:13: Variable `x` not found"),
            ("prefix_rule(", "1:13: Parse error: unexpected new line here"),
            ("prefix_rule(['a']) prefix_rule(['b'])", "1:20: Parse error: unexpected identifier 'prefix_rule' here"),
            ("prefix_rule(['a' 'b'])", "1:18: Parse error: unexpected string literal \"b\" here"),
            ("x = 'a", "1:5: Parse error: unfinished string literal"),
            ("import os", "1:1: Parse error: unexpected keyword 'import' here"),
            (
                "host_executable(name='a', paths=['b'])",
                "1:1: invalid rule: host_executable paths must be absolute (got b)",
            ),
            (
                "host_executable(name='a/b', paths=[])",
                "1:1: invalid rule: host_executable name must be a bare executable name (got a/b)",
            ),
            ("host_executable('a', ['/x/b'])", "1:1: invalid rule: host_executable path `/x/b` must have basename `a`"),
            ("host_executable('', [])", "1:1: invalid rule: host_executable name cannot be empty"),
            (
                "network_rule(host='x', protocol='https')",
                "1:1: Missing parameter `decision` for call to `network_rule`",
            ),
            (
                "network_rule('x', 'ftp', 'allow')",
                "1:1: invalid rule: network_rule protocol must be one of http, https, socks5_tcp, socks5_udp (got ftp)",
            ),
        ] {
            assert_eq!(read(source), Err(expected.to_owned()), "{source}");
        }
        assert!(read(&"[".repeat(10_000)).is_err(), "depth has a bound");
        let loops = "for a in ['1','2','3','4','5','6','7','8','9','0']:\n".to_owned();
        let nested: String = (0..8).map(|depth| " ".repeat(depth) + &loops).collect();
        assert!(read(&(nested + "        prefix_rule(['a'])")).is_err(), "so have loops");
    }

    #[test]
    fn network_rules_are_parsed() {
        let rules =
            evaluate("network_rule(host='X.com:443', protocol='http-connect', decision='deny', justification='no')");
        let expected = NetworkRule {
            host: "x.com".into(),
            protocol: NetworkProtocol::Https,
            decision: NetworkDecision::Deny,
            justification: Some("no".into()),
        };
        assert_eq!(rules.unwrap().network(), [expected]);
    }

    proptest! {
        #[test]
        fn no_rules_file_panics(source in "(prefix_rule|for|in|x|[\\[\\](){}=+,:;'\"\\\\#a-c0-9 \n\t])*") {
            let _ = read(&source);
        }
    }
}
