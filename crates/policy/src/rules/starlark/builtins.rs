//! Built-in functions.

use super::heap::{Heap, HeapResult};
use super::value::Value;

pub(super) const BUILTINS: &[&str] = &[
    "abs",
    "all",
    "any",
    "bool",
    "chr",
    "dict",
    "enumerate",
    "fail",
    "int",
    "len",
    "list",
    "max",
    "min",
    "ord",
    "range",
    "repr",
    "reversed",
    "sorted",
    "str",
    "tuple",
    "type",
    "zip",
];

/// The arguments of a call.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments {
    pub plain: Vec<Value>,
    pub named: Vec<(String, Value)>,
}

impl Heap {
    pub fn builtin(&mut self, name: &str, arguments: Arguments) -> HeapResult<Value> {
        let Arguments { plain, mut named } = arguments;
        if name == "dict" {
            return self.make_dict(&plain, named);
        }
        let reverse = match named.iter().position(|(given, _)| name == "sorted" && given == "reverse") {
            Some(at) => self.truth(&named.remove(at).1),
            None => false,
        };
        if let Some((extra, _)) = named.first() {
            return Err(format!("Found `{extra}` extra named parameter(s) for call to {name}"));
        }
        match (name, &plain[..]) {
            ("fail", reasons) => {
                let reasons: Vec<_> = reasons.iter().map(|reason| self.shown(reason)).collect::<Result<_, _>>()?;
                Err(format!("fail: {}", reasons.join(" ")))
            }
            ("len", [value]) => match value {
                Value::Text(text) => Ok(Value::Int(count(text.chars().count()))),
                other => Ok(Value::Int(count(self.items(other)?.len()))),
            },
            ("str", [value]) => {
                let text = self.shown(value)?;
                self.text(text)
            }
            ("repr", [value]) => {
                let text = self.written(value)?;
                self.text(text)
            }
            ("bool", []) => Ok(Value::Bool(false)),
            ("bool", [value]) => Ok(Value::Bool(self.truth(value))),
            ("type", [value]) => Ok(Value::text(value.kind())),
            ("int", [value]) => int(value),
            ("abs", [Value::Int(number)]) => {
                number.checked_abs().map(Value::Int).ok_or_else(|| "integer overflow".into())
            }
            ("ord", [Value::Text(text)]) if text.chars().count() == 1 => {
                Ok(Value::Int(text.chars().next().map_or(0, |c| i64::from(u32::from(c)))))
            }
            ("chr", [Value::Int(code)]) => {
                let c = u32::try_from(*code).ok().and_then(char::from_u32);
                Ok(Value::text(&c.ok_or_else(|| format!("{code} is no character"))?.to_string()))
            }
            ("list" | "tuple", []) => {
                if name == "list" {
                    self.list(Vec::new())
                } else {
                    self.tuple(Vec::new())
                }
            }
            ("list", [value]) => {
                let items = self.items(value)?;
                self.list(items)
            }
            ("tuple", [value]) => {
                let items = self.items(value)?;
                self.tuple(items)
            }
            ("all", [value]) => Ok(Value::Bool(self.items(value)?.iter().all(|item| self.truth(item)))),
            ("any", [value]) => Ok(Value::Bool(self.items(value)?.iter().any(|item| self.truth(item)))),
            (
                "range",
                [Value::Int(_)] | [Value::Int(_), Value::Int(_)] | [Value::Int(_), Value::Int(_), Value::Int(_)],
            ) => self.range(&plain),
            ("enumerate", [value] | [value, _]) => {
                let first = match plain.get(1) {
                    None => 0,
                    Some(Value::Int(first)) => *first,
                    Some(other) => return Err(format!("enumerate starts with an int, not `{}`", other.kind())),
                };
                let items = self.items(value)?;
                let pairs = items
                    .into_iter()
                    .zip(0i64..)
                    .map(|(item, at)| self.tuple(vec![Value::Int(first.saturating_add(at)), item]));
                let pairs = pairs.collect::<Result<_, _>>()?;
                self.list(pairs)
            }
            ("zip", lists) => {
                let lists: Vec<_> = lists.iter().map(|list| self.items(list)).collect::<Result<_, _>>()?;
                let len = lists.iter().map(Vec::len).min().unwrap_or(0);
                let rows = (0..len).map(|at| self.tuple(lists.iter().map(|list| list[at].clone()).collect()));
                let rows = rows.collect::<Result<_, _>>()?;
                self.list(rows)
            }
            ("reversed", [value]) => {
                let items = self.items(value)?.into_iter().rev().collect();
                self.list(items)
            }
            ("sorted", [value]) => {
                let mut items = self.sorted(value)?;
                if reverse {
                    items.reverse();
                }
                self.list(items)
            }
            ("min" | "max", [value]) => {
                let items = self.items(value)?;
                self.extreme(name, items)
            }
            ("min" | "max", [_, _, ..]) => self.extreme(name, plain),
            (name, arguments) => {
                let kinds: Vec<_> = arguments.iter().map(Value::kind).collect();
                Err(format!("`{name}` cannot be called with ({})", kinds.join(", ")))
            }
        }
    }

    fn make_dict(&mut self, plain: &[Value], named: Vec<(String, Value)>) -> HeapResult<Value> {
        let mut pairs = match plain {
            [] => Vec::new(),
            [Value::Dict(dict)] => self.dicts[*dict].clone(),
            [list] => {
                let mut pairs = Vec::new();
                for pair in self.items(list)? {
                    match &self.items(&pair)?[..] {
                        [key, value] => pairs.push((key.clone(), value.clone())),
                        _ => return Err("a dict is made of pairs".into()),
                    }
                }
                pairs
            }
            _ => return Err("`dict` takes one positional argument".into()),
        };
        pairs.extend(named.into_iter().map(|(name, value)| (Value::text(&name), value)));
        self.dict(pairs)
    }

    fn range(&mut self, bounds: &[Value]) -> HeapResult<Value> {
        let bounds: Vec<i64> =
            bounds.iter().filter_map(|bound| if let Value::Int(bound) = bound { Some(*bound) } else { None }).collect();
        let (start, stop, step) = match bounds[..] {
            [stop] => (0, stop, 1),
            [start, stop] => (start, stop, 1),
            [start, stop, step] => (start, stop, step),
            _ => (0, 0, 1),
        };
        if step == 0 {
            return Err("Third argument of range (step) cannot be zero".into());
        }
        let mut items = Vec::new();
        let mut at = start;
        while if step > 0 { at < stop } else { at > stop } {
            self.spend(1)?;
            items.push(Value::Int(at));
            match at.checked_add(step) {
                Some(next) => at = next,
                None => break,
            }
        }
        self.list(items)
    }

    /// Insertion sort: comparing may fail, and lists are short.
    fn sorted(&mut self, value: &Value) -> HeapResult<Vec<Value>> {
        let mut sorted: Vec<Value> = Vec::new();
        for item in self.items(value)? {
            let (mut low, mut high) = (0, sorted.len());
            while low < high {
                let middle = usize::midpoint(low, high);
                let other = sorted[middle].clone();
                if self.compare(&item, &other)?.is_lt() { high = middle } else { low = middle + 1 }
            }
            sorted.insert(low, item);
        }
        Ok(sorted)
    }

    fn extreme(&mut self, name: &str, items: Vec<Value>) -> HeapResult<Value> {
        let mut items = items.into_iter();
        let mut best = items.next().ok_or_else(|| format!("`{name}` needs at least one value"))?;
        for item in items {
            let order = self.compare(&item, &best)?;
            if if name == "min" { order.is_lt() } else { order.is_gt() } {
                best = item;
            }
        }
        Ok(best)
    }
}

fn int(value: &Value) -> HeapResult<Value> {
    match value {
        Value::Int(number) => Ok(Value::Int(*number)),
        Value::Bool(value) => Ok(Value::Int(i64::from(*value))),
        Value::Text(text) => {
            text.trim().parse().map(Value::Int).map_err(|_| format!("{} is no int", crate::rules::quoted(text)))
        }
        other => Err(format!("`{}` cannot become an int", other.kind())),
    }
}

pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
