//! Methods of strings, lists and dicts.

use super::builtins::{Arguments, count};
use super::heap::{Heap, HeapResult};
use super::value::Value;

const OF_TEXT: &[&str] = &[
    "capitalize",
    "count",
    "elems",
    "endswith",
    "find",
    "format",
    "index",
    "isalnum",
    "isalpha",
    "isdigit",
    "islower",
    "isspace",
    "isupper",
    "join",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rpartition",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "title",
    "upper",
];
const OF_LIST: &[&str] = &["append", "clear", "extend", "index", "insert", "pop", "remove"];
const OF_DICT: &[&str] = &["clear", "get", "items", "keys", "pop", "setdefault", "update", "values"];

/// Whether a value has a method of this name.
pub(super) fn exists(value: &Value, name: &str) -> bool {
    let known = match value {
        Value::Text(_) => OF_TEXT,
        Value::List(_) => OF_LIST,
        Value::Dict(_) => OF_DICT,
        _ => &[],
    };
    known.contains(&name)
}

impl Heap {
    pub fn call_method(&mut self, of: &Value, name: &str, arguments: Arguments) -> HeapResult<Value> {
        let Arguments { plain, named } = arguments;
        match of {
            Value::Text(text) if name == "format" => return self.format(&text.clone(), &plain, &named),
            Value::Dict(dict) if name == "update" => {
                let more = match plain.first() {
                    Some(Value::Dict(more)) => self.dicts[*more].clone(),
                    None => Vec::new(),
                    Some(other) => return Err(format!("`update` takes a dict, not `{}`", other.kind())),
                };
                let named = named.into_iter().map(|(name, value)| (Value::text(&name), value));
                for (key, value) in more.into_iter().chain(named) {
                    self.insert(*dict, key, value)?;
                }
                return Ok(Value::None);
            }
            _ => {}
        }
        if let Some((extra, _)) = named.first() {
            return Err(format!("Found `{extra}` extra named parameter(s) for call to {name}"));
        }
        let done = match of {
            Value::Text(text) => {
                self.spend_text(text.len())?;
                self.text_method(&text.clone(), name, &plain)?
            }
            Value::List(list) => self.list_method(*list, name, &plain)?,
            Value::Dict(dict) => self.dict_method(*dict, name, &plain)?,
            _ => None,
        };
        done.ok_or_else(|| {
            let kinds: Vec<_> = plain.iter().map(Value::kind).collect();
            format!("`{}.{name}` cannot be called with ({})", of.kind(), kinds.join(", "))
        })
    }

    fn text_method(&mut self, text: &str, name: &str, arguments: &[Value]) -> HeapResult<Option<Value>> {
        let given: Option<Vec<&str>> = arguments
            .iter()
            .map(|argument| match argument {
                Value::Text(text) => Some(&**text),
                _ => None,
            })
            .collect();
        if name == "join" {
            let [list] = arguments else { return Ok(None) };
            return self.join(text, list).map(Some);
        }
        if let ("startswith" | "endswith", [choices @ Value::Tuple(_)]) = (name, arguments) {
            let choices = self.items(choices)?;
            let fits = |choice: &Value| match choice {
                Value::Text(part) if name == "startswith" => text.starts_with(&**part),
                Value::Text(part) => text.ends_with(&**part),
                _ => false,
            };
            return Ok(Some(Value::Bool(choices.iter().any(fits))));
        }
        let Some(given) = given else { return Ok(None) };
        let all = |wanted: fn(char) -> bool| Value::Bool(!text.is_empty() && text.chars().all(wanted));
        let cased = |wanted: fn(char) -> bool, other: fn(char) -> bool| {
            Value::Bool(text.chars().any(wanted) && !text.chars().any(other))
        };
        Ok(Some(match (name, &given[..]) {
            ("lower", []) => self.text(text.to_lowercase())?,
            ("upper", []) => self.text(text.to_uppercase())?,
            ("capitalize", []) => self.text(capitalized(text))?,
            ("title", []) => {
                let words: Vec<_> = text.split(' ').map(capitalized).collect();
                self.text(words.join(" "))?
            }
            ("strip", []) => self.text(text.trim())?,
            ("lstrip", []) => self.text(text.trim_start())?,
            ("rstrip", []) => self.text(text.trim_end())?,
            ("strip", [letters]) => self.text(text.trim_matches(|c| letters.contains(c)))?,
            ("lstrip", [letters]) => self.text(text.trim_start_matches(|c| letters.contains(c)))?,
            ("rstrip", [letters]) => self.text(text.trim_end_matches(|c| letters.contains(c)))?,
            ("startswith", [part]) => Value::Bool(text.starts_with(part)),
            ("endswith", [part]) => Value::Bool(text.ends_with(part)),
            ("removeprefix", [part]) => self.text(text.strip_prefix(part).unwrap_or(text))?,
            ("removesuffix", [part]) => self.text(text.strip_suffix(part).unwrap_or(text))?,
            ("replace", [old, new]) => {
                let times = if old.is_empty() { text.len() + 1 } else { text.matches(old).count() };
                self.spend_text(times.saturating_mul(new.len()))?;
                self.text(text.replace(old, new))?
            }
            ("count", [part]) => Value::Int(count(text.matches(part).count())),
            ("find", [part]) => letters_before(text, text.find(part)).unwrap_or(Value::Int(-1)),
            ("rfind", [part]) => letters_before(text, text.rfind(part)).unwrap_or(Value::Int(-1)),
            ("index", [part]) => letters_before(text, text.find(part)).ok_or("substring not found")?,
            ("split", []) => self.texts(text.split_whitespace())?,
            ("split", [""]) => return Err("Empty separator cannot be used for splitting".into()),
            ("split", [by]) => self.texts(text.split(by))?,
            ("splitlines", []) => self.texts(text.lines())?,
            ("elems", []) => {
                let letters: Vec<String> = text.chars().map(String::from).collect();
                self.texts(letters.iter().map(String::as_str))?
            }
            ("partition", [by]) => {
                self.parted(text.split_once(by).map(|(a, b)| [a, by, b]).unwrap_or([text, "", ""]))?
            }
            ("rpartition", [by]) => {
                self.parted(text.rsplit_once(by).map(|(a, b)| [a, by, b]).unwrap_or(["", "", text]))?
            }
            ("isalpha", []) => all(char::is_alphabetic),
            ("isdigit", []) => all(char::is_numeric),
            ("isalnum", []) => all(char::is_alphanumeric),
            ("isspace", []) => all(char::is_whitespace),
            ("islower", []) => cased(char::is_lowercase, char::is_uppercase),
            ("isupper", []) => cased(char::is_uppercase, char::is_lowercase),
            _ => return Ok(None),
        }))
    }

    fn join(&mut self, between: &str, list: &Value) -> HeapResult<Value> {
        let mut texts = Vec::new();
        for item in self.items(list)? {
            match item {
                Value::Text(text) => {
                    self.spend_text(text.len() + between.len())?;
                    texts.push(text);
                }
                other => return Err(format!("`join` takes texts, not `{}`", other.kind())),
            }
        }
        Ok(Value::text(&texts.join(between)))
    }

    fn texts<'a>(&mut self, texts: impl Iterator<Item = &'a str>) -> HeapResult<Value> {
        let items = texts.map(|text| self.text(text)).collect::<Result<_, _>>()?;
        self.list(items)
    }

    fn parted(&mut self, parts: [&str; 3]) -> HeapResult<Value> {
        let parts = parts.into_iter().map(|part| self.text(part)).collect::<Result<_, _>>()?;
        self.tuple(parts)
    }

    fn list_method(&mut self, list: usize, name: &str, arguments: &[Value]) -> HeapResult<Option<Value>> {
        let len = self.lists[list].len();
        // Negative ones count from the end.
        let at = |index: i64| {
            let index = if index < 0 { index.saturating_add(count(len)) } else { index };
            usize::try_from(index).unwrap_or(0)
        };
        let nothing = Ok(Some(Value::None));
        match (name, arguments) {
            ("append", [item]) => {
                self.spend(1)?;
                self.lists[list].push(item.clone());
                nothing
            }
            ("extend", [more]) => {
                let more = self.items(more)?;
                self.spend(more.len())?;
                self.lists[list].extend(more);
                nothing
            }
            ("insert", [Value::Int(index), item]) => {
                self.spend(1 + len)?;
                self.lists[list].insert(at(*index).min(len), item.clone());
                nothing
            }
            ("clear", []) => {
                self.lists[list].clear();
                nothing
            }
            ("pop", []) => self.lists[list].pop().map(Some).ok_or_else(|| "pop from an empty list".into()),
            ("pop", [Value::Int(index)]) => {
                self.spend(len)?;
                let at = Some(at(*index)).filter(|at| *at < len && index.unsigned_abs() <= len as u64);
                let at = at.ok_or_else(|| format!("Index `{index}` is out of bound"))?;
                Ok(Some(self.lists[list].remove(at)))
            }
            ("index" | "remove", [item]) => {
                for (at, found) in self.items(&Value::List(list))?.iter().enumerate() {
                    if self.equal(found, item)? {
                        if name == "remove" {
                            self.lists[list].remove(at);
                            return nothing;
                        }
                        return Ok(Some(Value::Int(count(at))));
                    }
                }
                Err("the list has no such item".into())
            }
            _ => Ok(None),
        }
    }

    fn dict_method(&mut self, dict: usize, name: &str, arguments: &[Value]) -> HeapResult<Option<Value>> {
        match (name, arguments) {
            ("keys", []) => {
                let keys = self.items(&Value::Dict(dict))?;
                self.list(keys).map(Some)
            }
            ("values", []) => {
                let values = self.dicts[dict].iter().map(|(_, value)| value.clone()).collect();
                self.list(values).map(Some)
            }
            ("items", []) => {
                let pairs = self.dicts[dict].clone();
                let pairs =
                    pairs.into_iter().map(|(key, value)| self.tuple(vec![key, value])).collect::<Result<_, _>>()?;
                self.list(pairs).map(Some)
            }
            ("clear", []) => {
                self.dicts[dict].clear();
                Ok(Some(Value::None))
            }
            ("get", [key]) => self.get_or(dict, key, Value::None).map(Some),
            ("get", [key, default]) => self.get_or(dict, key, default.clone()).map(Some),
            ("setdefault", [key] | [key, _]) => {
                let default = arguments.get(1).cloned().unwrap_or(Value::None);
                if self.find(dict, key)?.is_none() {
                    self.insert(dict, key.clone(), default)?;
                }
                self.get_or(dict, key, Value::None).map(Some)
            }
            ("pop", [key] | [key, _]) => match (self.find(dict, key)?, arguments.get(1)) {
                (Some(at), _) => Ok(Some(self.dicts[dict].remove(at).1)),
                (None, Some(default)) => Ok(Some(default.clone())),
                (None, None) => Err(format!("Key `{}` was not found", self.written(key)?)),
            },
            _ => Ok(None),
        }
    }

    fn get_or(&mut self, dict: usize, key: &Value, default: Value) -> HeapResult<Value> {
        Ok(self.find(dict, key)?.map_or(default, |at| self.dicts[dict][at].1.clone()))
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters.flat_map(char::to_lowercase)).collect(),
        None => String::new(),
    }
}

/// A byte position of a string as the number of characters before it.
fn letters_before(text: &str, at: Option<usize>) -> Option<Value> {
    at.map(|at| Value::Int(count(text[..at].chars().count())))
}
