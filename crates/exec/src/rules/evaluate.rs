//! What a rules file says: its statements are carried out, and each call of a known function adds a rule.

use std::collections::BTreeMap;

use super::arguments::{Value, bind, decision, examples, executables, justification, list, pattern, required, text};
use super::host::{NetworkDecision, NetworkProtocol, NetworkRule, host};
use super::lexer::{Position, SyntaxError};
use super::parse::{Expression, Kind, Statement, parse};
use super::{PrefixRule, Rules};
use crate::quote::join;

/// Where and why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EvaluationError {
    pub message: String,
    pub start: Position,
    pub end: Position,
}

/// What one file may add: far more than anybody writes, and an end for loops in loops.
const MAX_RULES: usize = 10_000;

pub(super) fn evaluate(source: &str) -> Result<Rules, EvaluationError> {
    let statements =
        parse(source).map_err(|SyntaxError { message, at }| EvaluationError { message, start: at, end: at })?;
    let mut evaluator = Evaluator::default();
    evaluator.run(&statements)?;
    evaluator.check_examples()?;
    Ok(evaluator.rules)
}

#[derive(Default)]
struct Evaluator {
    rules: Rules,
    names: BTreeMap<String, Value>,
    examples: Vec<Example>,
    calls: usize,
}

/// A command that a rule must, or must not, apply to.
struct Example {
    rule: PrefixRule,
    command: Vec<String>,
    applies: bool,
    call: (Position, Position),
}

type Evaluated<T> = Result<T, EvaluationError>;

impl Evaluator {
    fn run(&mut self, statements: &[Statement]) -> Evaluated<()> {
        for statement in statements {
            match statement {
                Statement::Assign(name, value) => {
                    let value = self.value(value)?;
                    self.names.insert(name.clone(), value);
                }
                Statement::Expression(expression) => {
                    self.value(expression)?;
                }
                Statement::For(name, list, body) => {
                    for item in self.items(list)? {
                        self.names.insert(name.clone(), item);
                        self.run(body)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn value(&mut self, expression: &Expression) -> Evaluated<Value> {
        let wrong = |message: String| Err(EvaluationError { message, start: expression.start, end: expression.end });
        match &expression.kind {
            Kind::Text(text) => Ok(Value::Text(text.clone())),
            Kind::Format(text) => match self.format(text) {
                Ok(text) => Ok(Value::Text(text)),
                Err(message) => wrong(message),
            },
            Kind::Number(_) => Ok(Value::Number),
            Kind::Name(name) if name == "None" => Ok(Value::None),
            Kind::Name(name) => match self.names.get(name) {
                Some(value) => Ok(value.clone()),
                None => wrong(format!("Variable `{name}` not found")),
            },
            Kind::List(items) => Ok(Value::List(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?)),
            Kind::Each(item, name, list) => {
                let mut values = Vec::new();
                for value in self.items(list)? {
                    self.names.insert(name.clone(), value);
                    values.push(self.value(item)?);
                }
                Ok(Value::List(values))
            }
            Kind::Add(left, right) => match (self.value(left)?, self.value(right)?) {
                (Value::Text(left), Value::Text(right)) => Ok(Value::Text(left + &right)),
                (Value::List(mut left), Value::List(right)) => {
                    left.extend(right);
                    Ok(Value::List(left))
                }
                (left, right) => {
                    wrong(format!("Operation `+` not supported for types `{}` and `{}`", left.kind(), right.kind()))
                }
            },
            Kind::Call(function, arguments) => {
                let arguments: Vec<_> = arguments
                    .iter()
                    .map(|(name, value)| Ok((name.as_deref(), self.value(value)?)))
                    .collect::<Evaluated<_>>()?;
                self.calls += 1;
                let called = if self.calls > MAX_RULES {
                    Err("too many rules".to_owned())
                } else {
                    self.call(function, &arguments, (expression.start, expression.end))
                };
                called.map(|()| Value::None).or_else(wrong)
            }
        }
    }

    fn items(&mut self, list: &Expression) -> Evaluated<Vec<Value>> {
        match self.value(list)? {
            Value::List(items) => Ok(items),
            other => {
                let message = format!("Operation `(iter)` not supported on type `{}`", other.kind());
                Err(EvaluationError { message, start: list.start, end: list.end })
            }
        }
    }

    /// Replaces names in braces by their text.
    fn format(&self, text: &str) -> Result<String, String> {
        let mut result = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or("unfinished `{` in a format string")?;
            match self.names.get(name) {
                Some(Value::Text(value)) => result.extend([before, value]),
                Some(other) => return Err(format!("cannot format a value of type `{}`", other.kind())),
                None => return Err(format!("Variable `{name}` not found")),
            }
            rest = after;
        }
        Ok(result + rest)
    }

    fn call(
        &mut self,
        function: &str,
        arguments: &[(Option<&str>, Value)],
        call: (Position, Position),
    ) -> Result<(), String> {
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

    /// Examples are tried on the rule that gives them, with the programs of the whole file.
    fn check_examples(&self) -> Evaluated<()> {
        for Example { rule, command, applies, call: (start, end) } in &self.examples {
            let alone =
                Rules { prefixes: vec![rule.clone()], executables: self.rules.executables.clone(), ..Rules::default() };
            if alone.matches(command).is_empty() == *applies {
                let wanted = if *applies { "match" } else { "not match" };
                let message = format!("expected example to {wanted} its rule: {}", join(command));
                return Err(EvaluationError { message, start: *start, end: *end });
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
        let rules = evaluate(source)
            .map_err(|error| format!("{}:{} {}", error.start.line, error.start.column, error.message))?;
        Ok(rules.prefixes.iter().map(|rule| format!("{:?} {:?}", rule.decision, rule.pattern)).collect())
    }

    #[test]
    fn files_are_carried_out() {
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
    fn mistakes_are_named_with_their_place() {
        for (source, expected) in [
            ("prefix_rule(pattern=[])", "1:1 invalid pattern element: pattern cannot be empty"),
            ("prefix_rule(['a', []])", "1:1 invalid pattern element: pattern alternatives cannot be empty"),
            (
                "prefix_rule([5])",
                "1:1 invalid pattern element: pattern element must be a string or list of strings (got int)",
            ),
            ("prefix_rule('a')", "1:1 Type of parameter `pattern` doesn't match, expected `list`, actual `string`"),
            ("\n prefix_rule(['a'])", "2:2 Parse error: unexpected indentation here"),
            ("prefix_rule(['a'], decision='bogus')", "1:1 invalid decision: bogus"),
            (
                "prefix_rule(['a'], decision=None)",
                "1:1 Type of parameter `decision` doesn't match, expected `str`, actual `NoneType`",
            ),
            ("prefix_rule(['a'], justification=' ')", "1:1 invalid rule: justification cannot be empty"),
            ("prefix_rule(['a'], match=['b'])", "1:1 expected example to match its rule: b"),
            ("prefix_rule(['a'], not_match=['a b'])", "1:1 expected example to not match its rule: a b"),
            ("prefix_rule(['a'], match=[\"a '\"])", "1:1 invalid example: example string has invalid shell syntax"),
            ("prefix_rule(['a'], bogus=1)", "1:1 Found `bogus` extra named parameter(s) for call to prefix_rule"),
            (
                "prefix_rule(['a'], pattern=['b'])",
                "1:1 Argument `pattern` occurs more than once in call to prefix_rule",
            ),
            ("prefix_rule()", "1:1 Missing parameter `pattern` for call to `prefix_rule`"),
            ("\nbogus()", "2:1 Variable `bogus` not found"),
            ("prefix_rule(x)", "1:13 Variable `x` not found"),
            ("prefix_rule(", "1:13 Parse error: unexpected new line here"),
            ("prefix_rule(['a']) prefix_rule(['b'])", "1:20 Parse error: unexpected identifier 'prefix_rule' here"),
            ("prefix_rule(['a' 'b'])", "1:18 Parse error: unexpected string literal \"b\" here"),
            ("x = 'a", "1:5 Parse error: unfinished string literal"),
            ("def f(): pass", "1:1 Parse error: unexpected `def`, which rules files cannot use here"),
            ("if True:\n  pass", "1:1 Parse error: unexpected `if`, which rules files cannot use here"),
            (
                "host_executable(name='a', paths=['b'])",
                "1:1 invalid rule: host_executable paths must be absolute (got b)",
            ),
            (
                "host_executable(name='a/b', paths=[])",
                "1:1 invalid rule: host_executable name must be a bare executable name (got a/b)",
            ),
            ("host_executable('a', ['/x/b'])", "1:1 invalid rule: host_executable path `/x/b` must have basename `a`"),
            ("host_executable('', [])", "1:1 invalid rule: host_executable name cannot be empty"),
            ("network_rule(host='x', protocol='https')", "1:1 Missing parameter `decision` for call to `network_rule`"),
            (
                "network_rule('x', 'ftp', 'allow')",
                "1:1 invalid rule: network_rule protocol must be one of http, https, socks5_tcp, socks5_udp (got ftp)",
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
    fn hosts_have_rules_too() {
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
        fn any_file_is_read_or_refused(source in "(prefix_rule|for|in|x|[\\[\\](){}=+,:;'\"\\\\#a-c0-9 \n\t])*") {
            let _ = read(&source);
        }
    }
}
