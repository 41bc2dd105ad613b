//! Formatting of strings: `text % values` and `text.format(…)`.

use super::heap::{Heap, HeapResult};
use super::value::Value;

impl Heap {
    /// `text % values`, where `values` may be a single value.
    pub fn percent(&mut self, text: &Value, values: &Value) -> HeapResult<Value> {
        let Value::Text(text) = text else { return Err("only texts have places to fill in".into()) };
        let values = match values {
            Value::Tuple(_) => self.items(values)?,
            one => vec![one.clone()],
        };
        let mut values = values.into_iter();
        let mut result = String::new();
        let mut rest = text.chars();
        self.spend_text(text.len())?;
        while let Some(c) = rest.next() {
            if c != '%' {
                result.push(c);
                continue;
            }
            let mut next = || values.next().ok_or("Not enough parameters in format string");
            match rest.next() {
                Some('%') => result.push('%'),
                Some('s') => result.push_str(&self.shown(&next()?)?),
                Some('r') => result.push_str(&self.written(&next()?)?),
                Some('d') => match next()? {
                    Value::Int(number) => result.push_str(&number.to_string()),
                    other => return Err(format!("`%d` needs an int, not `{}`", other.kind())),
                },
                _ => return Err("only `%s`, `%r`, `%d` and `%%` can be filled in".into()),
            }
        }
        if values.next().is_some() {
            return Err("Too many arguments for format string".into());
        }
        self.text(result)
    }

    /// `text.format(…)`: `{}`, `{0}` and `{name}`.
    pub fn format(&mut self, text: &str, values: &[Value], named: &[(String, Value)]) -> HeapResult<Value> {
        let mut result = String::new();
        let mut next = 0;
        let mut rest = text.chars().peekable();
        self.spend_text(text.len())?;
        while let Some(c) = rest.next() {
            match c {
                '{' | '}' if rest.next_if_eq(&c).is_some() => result.push(c),
                '}' => return Err("a single `}` in a format string".into()),
                '{' => {
                    let mut name = String::new();
                    loop {
                        match rest.next() {
                            Some('}') => break,
                            Some(c) if c.is_alphanumeric() || c == '_' => name.push(c),
                            Some(_) => return Err("only names and numbers may stand in braces".into()),
                            None => return Err("an unfinished `{` in a format string".into()),
                        }
                    }
                    let value = if name.is_empty() {
                        next += 1;
                        values.get(next - 1)
                    } else if let Ok(number) = name.parse::<usize>() {
                        values.get(number)
                    } else {
                        named.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
                    };
                    let value = value.ok_or_else(|| format!("Not enough parameters in format string: {{{name}}}"))?;
                    result.push_str(&self.shown(value)?);
                }
                c => result.push(c),
            }
        }
        self.text(result)
    }
}
