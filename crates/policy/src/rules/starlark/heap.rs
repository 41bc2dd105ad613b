//! The heap of compound values, and operations on all values. Nothing is freed before the end; the limit of steps also
//! bounds the memory of a file.

use std::cmp::Ordering;
use std::rc::Rc;

use super::syntax::Definition;
use super::value::{HostValue, Value};

/// The most steps of a file: far more than a list of rules needs.
const STEPS: usize = 200_000;
/// The bytes of new text that count as one step.
const STEP_BYTES: usize = 16;
/// The deepest nesting of values for operations that recurse.
const MAX_DEPTH: usize = 64;

pub(super) struct Heap {
    steps: usize,
    pub lists: Vec<Vec<Value>>,
    pub tuples: Vec<Rc<[Value]>>,
    pub dicts: Vec<Vec<(Value, Value)>>,
    pub functions: Vec<Function>,
    /// The value that a method is of, and its name.
    pub methods: Vec<(Value, Rc<str>)>,
}

/// A function of the file's own, and where it was defined.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub definition: Rc<Definition>,
    pub scope: usize,
    /// The defaults of its parameters, in their order.
    pub defaults: Vec<Option<Value>>,
}

pub(super) type HeapResult<T> = Result<T, String>;

impl Heap {
    pub fn new() -> Self {
        Self {
            steps: STEPS,
            lists: Vec::new(),
            tuples: Vec::new(),
            dicts: Vec::new(),
            functions: Vec::new(),
            methods: Vec::new(),
        }
    }

    /// Uses up steps. An error when too few are left.
    pub fn spend(&mut self, steps: usize) -> HeapResult<()> {
        self.steps = self.steps.checked_sub(steps).ok_or("the file takes too many steps")?;
        Ok(())
    }

    /// Uses up the steps that a text of this length costs.
    pub fn spend_text(&mut self, bytes: usize) -> HeapResult<()> {
        self.spend(1 + bytes / STEP_BYTES)
    }

    pub fn text(&mut self, text: impl AsRef<str>) -> HeapResult<Value> {
        self.spend_text(text.as_ref().len())?;
        Ok(Value::text(text.as_ref()))
    }

    pub fn list(&mut self, items: Vec<Value>) -> HeapResult<Value> {
        self.spend(1 + items.len())?;
        self.lists.push(items);
        Ok(Value::List(self.lists.len() - 1))
    }

    pub fn tuple(&mut self, items: Vec<Value>) -> HeapResult<Value> {
        self.spend(1 + items.len())?;
        self.tuples.push(items.into());
        Ok(Value::Tuple(self.tuples.len() - 1))
    }

    pub fn dict(&mut self, pairs: Vec<(Value, Value)>) -> HeapResult<Value> {
        self.dicts.push(Vec::new());
        let dict = self.dicts.len() - 1;
        for (key, value) in pairs {
            self.insert(dict, key, value)?;
        }
        Ok(Value::Dict(dict))
    }

    pub fn method(&mut self, of: Value, name: &str) -> HeapResult<Value> {
        self.spend(1)?;
        self.methods.push((of, name.into()));
        Ok(Value::Method(self.methods.len() - 1))
    }

    /// The index of a key in a dict.
    pub fn find(&mut self, dict: usize, key: &Value) -> HeapResult<Option<usize>> {
        if matches!(key, Value::List(_) | Value::Dict(_)) {
            return Err(format!("Value of type `{}` is not hashable", key.kind()));
        }
        for at in 0..self.dicts[dict].len() {
            let found = self.dicts[dict][at].0.clone();
            if self.equal(&found, key)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    pub fn insert(&mut self, dict: usize, key: Value, value: Value) -> HeapResult<()> {
        self.spend(1)?;
        match self.find(dict, &key)? {
            Some(at) => self.dicts[dict][at].1 = value,
            None => self.dicts[dict].push((key, value)),
        }
        Ok(())
    }

    /// A copy of the items of an iterable.
    pub fn items(&mut self, value: &Value) -> HeapResult<Vec<Value>> {
        let items = match value {
            Value::List(list) => self.lists[*list].clone(),
            Value::Tuple(tuple) => self.tuples[*tuple].to_vec(),
            Value::Dict(dict) => self.dicts[*dict].iter().map(|(key, _)| key.clone()).collect(),
            other => return Err(format!("Operation `(iter)` not supported on type `{}`", other.kind())),
        };
        self.spend(items.len())?;
        Ok(items)
    }

    /// The truth value.
    pub fn truth(&self, value: &Value) -> bool {
        match value {
            Value::None => false,
            Value::Bool(value) => *value,
            Value::Int(value) => *value != 0,
            Value::Text(text) => !text.is_empty(),
            Value::List(list) => !self.lists[*list].is_empty(),
            Value::Tuple(tuple) => !self.tuples[*tuple].is_empty(),
            Value::Dict(dict) => !self.dicts[*dict].is_empty(),
            Value::Function(_) | Value::Builtin(_) | Value::Method(_) => true,
        }
    }

    pub fn equal(&mut self, left: &Value, right: &Value) -> HeapResult<bool> {
        self.equal_at(left, right, 0)
    }

    fn equal_at(&mut self, left: &Value, right: &Value, depth: usize) -> HeapResult<bool> {
        self.step_into(depth)?;
        Ok(match (left, right) {
            (Value::None, Value::None) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Int(left), Value::Int(right)) => left == right,
            (Value::Text(left), Value::Text(right)) => {
                self.spend_text(left.len().min(right.len()))?;
                left == right
            }
            (Value::List(_), Value::List(_)) | (Value::Tuple(_), Value::Tuple(_)) => {
                let (left, right) = (self.items(left)?, self.items(right)?);
                if left.len() != right.len() {
                    return Ok(false);
                }
                for (left, right) in left.iter().zip(&right) {
                    if !self.equal_at(left, right, depth + 1)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Dict(left), Value::Dict(right)) => self.equal_dicts(*left, *right, depth)?,
            (Value::Function(left), Value::Function(right)) => left == right,
            (Value::Builtin(left), Value::Builtin(right)) => left == right,
            _ => false,
        })
    }

    fn equal_dicts(&mut self, left: usize, right: usize, depth: usize) -> HeapResult<bool> {
        if self.dicts[left].len() != self.dicts[right].len() {
            return Ok(false);
        }
        self.spend(self.dicts[left].len())?;
        let pairs = self.dicts[left].clone();
        for (key, value) in &pairs {
            let Some(at) = self.find(right, key)? else { return Ok(false) };
            let other = self.dicts[right][at].1.clone();
            if !self.equal_at(value, &other, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub fn compare(&mut self, left: &Value, right: &Value) -> HeapResult<Ordering> {
        self.compare_at(left, right, 0)
    }

    fn compare_at(&mut self, left: &Value, right: &Value, depth: usize) -> HeapResult<Ordering> {
        self.step_into(depth)?;
        match (left, right) {
            (Value::Bool(left), Value::Bool(right)) => Ok(left.cmp(right)),
            (Value::Int(left), Value::Int(right)) => Ok(left.cmp(right)),
            (Value::Text(left), Value::Text(right)) => {
                self.spend_text(left.len().min(right.len()))?;
                Ok(left.cmp(right))
            }
            (Value::List(_), Value::List(_)) | (Value::Tuple(_), Value::Tuple(_)) => {
                let (left, right) = (self.items(left)?, self.items(right)?);
                for (left, right) in left.iter().zip(&right) {
                    let order = self.compare_at(left, right, depth + 1)?;
                    if order.is_ne() {
                        return Ok(order);
                    }
                }
                Ok(left.len().cmp(&right.len()))
            }
            (left, right) => {
                Err(format!("Operation `compare` not supported for types `{}` and `{}`", left.kind(), right.kind()))
            }
        }
    }

    /// A value as `str` returns it.
    pub fn shown(&mut self, value: &Value) -> HeapResult<String> {
        match value {
            Value::Text(text) => {
                self.spend_text(text.len())?;
                Ok(text.to_string())
            }
            other => self.written(other),
        }
    }

    /// A value as `repr` returns it.
    pub fn written(&mut self, value: &Value) -> HeapResult<String> {
        let mut text = String::new();
        self.write(&mut text, value, 0)?;
        Ok(text)
    }

    fn write(&mut self, text: &mut String, value: &Value, depth: usize) -> HeapResult<()> {
        self.step_into(depth)?;
        match value {
            Value::None => text.push_str("None"),
            Value::Bool(true) => text.push_str("True"),
            Value::Bool(false) => text.push_str("False"),
            Value::Int(number) => text.push_str(&number.to_string()),
            Value::Text(inner) => {
                self.spend_text(inner.len())?;
                text.push_str(&crate::rules::quoted(inner));
            }
            Value::List(_) => self.write_items(text, value, ("[", "]"), depth)?,
            Value::Tuple(tuple) => {
                let end = if self.tuples[*tuple].len() == 1 { ",)" } else { ")" };
                self.write_items(text, value, ("(", end), depth)?;
            }
            Value::Dict(dict) => {
                let pairs = self.dicts[*dict].clone();
                self.spend(pairs.len())?;
                text.push('{');
                for (at, (key, value)) in pairs.iter().enumerate() {
                    text.push_str(if at == 0 { "" } else { ", " });
                    self.write(text, key, depth + 1)?;
                    text.push_str(": ");
                    self.write(text, value, depth + 1)?;
                }
                text.push('}');
            }
            Value::Function(function) => text.push_str(&self.functions[*function].definition.name),
            Value::Builtin(name) => text.push_str(name),
            Value::Method(method) => text.push_str(&self.methods[*method].1),
        }
        Ok(())
    }

    fn write_items(&mut self, text: &mut String, value: &Value, around: (&str, &str), depth: usize) -> HeapResult<()> {
        text.push_str(around.0);
        for (at, item) in self.items(value)?.iter().enumerate() {
            text.push_str(if at == 0 { "" } else { ", " });
            self.write(text, item, depth + 1)?;
        }
        text.push_str(around.1);
        Ok(())
    }

    /// A copy of a value without references to the heap.
    pub fn plain(&mut self, value: &Value) -> HeapResult<HostValue> {
        self.plain_at(value, 0)
    }

    fn plain_at(&mut self, value: &Value, depth: usize) -> HeapResult<HostValue> {
        self.step_into(depth)?;
        match value {
            Value::Text(text) => {
                self.spend_text(text.len())?;
                Ok(HostValue::Text(text.to_string()))
            }
            Value::List(_) => {
                let items = self.items(value)?;
                Ok(HostValue::List(items.iter().map(|item| self.plain_at(item, depth + 1)).collect::<Result<_, _>>()?))
            }
            other => Ok(HostValue::Other(other.kind())),
        }
    }

    fn step_into(&mut self, depth: usize) -> HeapResult<()> {
        if depth > MAX_DEPTH {
            return Err("a value is too deeply nested".into());
        }
        self.spend(1)
    }
}
