//! The operators.

use super::heap::{Heap, HeapResult};
use super::syntax::StarlarkOperator;
use super::value::Value;

impl Heap {
    pub fn operate(&mut self, operator: StarlarkOperator, left: Value, right: Value) -> HeapResult<Value> {
        use StarlarkOperator as O;
        match operator {
            O::Equal => Ok(Value::Bool(self.equal(&left, &right)?)),
            O::Unequal => Ok(Value::Bool(!self.equal(&left, &right)?)),
            O::Less => Ok(Value::Bool(self.compare(&left, &right)?.is_lt())),
            O::LessOrEqual => Ok(Value::Bool(self.compare(&left, &right)?.is_le())),
            O::Greater => Ok(Value::Bool(self.compare(&left, &right)?.is_gt())),
            O::GreaterOrEqual => Ok(Value::Bool(self.compare(&left, &right)?.is_ge())),
            O::In => Ok(Value::Bool(self.contains(&right, &left)?)),
            O::NotIn => Ok(Value::Bool(!self.contains(&right, &left)?)),
            O::Add => self.add(left, right),
            O::Multiply => self.multiply(left, right),
            O::Remainder if matches!(left, Value::Text(_)) => self.percent(&left, &right),
            O::BitOr if matches!((&left, &right), (Value::Dict(_), Value::Dict(_))) => {
                let mut pairs = self.pairs(&left);
                pairs.extend(self.pairs(&right));
                self.dict(pairs)
            }
            _ => match (&left, &right) {
                (Value::Int(left), Value::Int(right)) => calculate(operator, *left, *right),
                _ => Err(unsupported(operator, &left, &right)),
            },
        }
    }

    fn pairs(&self, dict: &Value) -> Vec<(Value, Value)> {
        match dict {
            Value::Dict(dict) => self.dicts[*dict].clone(),
            _ => Vec::new(),
        }
    }

    fn add(&mut self, left: Value, right: Value) -> HeapResult<Value> {
        match (&left, &right) {
            (Value::Int(left), Value::Int(right)) => calculate(StarlarkOperator::Add, *left, *right),
            (Value::Text(left), Value::Text(right)) => {
                self.spend_text(left.len() + right.len())?;
                Ok(Value::Text(format!("{left}{right}").into()))
            }
            (Value::List(_), Value::List(_)) => {
                let items = [self.items(&left)?, self.items(&right)?].concat();
                self.list(items)
            }
            (Value::Tuple(_), Value::Tuple(_)) => {
                let items = [self.items(&left)?, self.items(&right)?].concat();
                self.tuple(items)
            }
            _ => Err(unsupported(StarlarkOperator::Add, &left, &right)),
        }
    }

    fn multiply(&mut self, left: Value, right: Value) -> HeapResult<Value> {
        let (value, times) = match (&left, &right) {
            (Value::Int(left), Value::Int(right)) => return calculate(StarlarkOperator::Multiply, *left, *right),
            (value, Value::Int(times)) | (Value::Int(times), value) => {
                (value.clone(), usize::try_from(*times).unwrap_or(0))
            }
            _ => return Err(unsupported(StarlarkOperator::Multiply, &left, &right)),
        };
        match &value {
            Value::Text(text) => {
                self.spend_text(text.len().saturating_mul(times))?;
                Ok(Value::Text(text.repeat(times).into()))
            }
            Value::List(_) | Value::Tuple(_) => {
                let items = self.items(&value)?;
                self.spend(items.len().saturating_mul(times))?;
                let items = vec![items; times].concat();
                if matches!(value, Value::List(_)) { self.list(items) } else { self.tuple(items) }
            }
            _ => Err(unsupported(StarlarkOperator::Multiply, &left, &right)),
        }
    }

    fn contains(&mut self, whole: &Value, part: &Value) -> HeapResult<bool> {
        match (whole, part) {
            (Value::Text(whole), Value::Text(part)) => {
                self.spend_text(whole.len())?;
                Ok(whole.contains(&**part))
            }
            (Value::Dict(dict), part) => Ok(self.find(*dict, part)?.is_some()),
            (Value::List(_) | Value::Tuple(_), part) => {
                for item in self.items(whole)? {
                    if self.equal(&item, part)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => Err(unsupported(StarlarkOperator::In, part, whole)),
        }
    }

    /// `value[index]`
    pub fn element(&mut self, value: &Value, index: &Value) -> HeapResult<Value> {
        match (value, index) {
            (Value::Dict(dict), key) => match self.find(*dict, key)? {
                Some(at) => Ok(self.dicts[*dict][at].1.clone()),
                None => Err(format!("Key `{}` was not found", self.written(key)?)),
            },
            (Value::List(list), Value::Int(index)) => {
                let items = &self.lists[*list];
                Ok(items[place(*index, items.len())?].clone())
            }
            (Value::Tuple(tuple), Value::Int(index)) => {
                let items = &self.tuples[*tuple];
                Ok(items[place(*index, items.len())?].clone())
            }
            (Value::Text(text), Value::Int(index)) => {
                let text = text.clone();
                self.spend_text(text.len())?;
                let at = place(*index, text.chars().count())?;
                self.text(text.chars().nth(at).map(String::from).unwrap_or_default())
            }
            _ => Err(format!("Operation `[]` not supported for types `{}` and `{}`", value.kind(), index.kind())),
        }
    }

    pub fn set_element(&mut self, value: &Value, index: Value, new: Value) -> HeapResult<()> {
        match (value, index) {
            (Value::Dict(dict), key) => self.insert(*dict, key, new),
            (Value::List(list), Value::Int(index)) => {
                let items = &mut self.lists[*list];
                let at = place(index, items.len())?;
                items[at] = new;
                Ok(())
            }
            (value, _) => Err(format!("Operation `[]=` not supported on type `{}`", value.kind())),
        }
    }

    /// `value[start:stop:step]`
    pub fn slice(&mut self, value: &Value, parts: [Option<i64>; 3]) -> HeapResult<Value> {
        match value {
            Value::Text(text) => {
                let text = text.clone();
                self.spend_text(text.len())?;
                let letters: Vec<char> = text.chars().collect();
                let chosen: String = chosen(letters.len(), parts)?.into_iter().map(|at| letters[at]).collect();
                self.text(chosen)
            }
            Value::List(_) | Value::Tuple(_) => {
                let items = self.items(value)?;
                let chosen = chosen(items.len(), parts)?.into_iter().map(|at| items[at].clone()).collect();
                if matches!(value, Value::List(_)) { self.list(chosen) } else { self.tuple(chosen) }
            }
            other => Err(format!("Operation `[::]` not supported on type `{}`", other.kind())),
        }
    }
}

fn calculate(operator: StarlarkOperator, left: i64, right: i64) -> HeapResult<Value> {
    use StarlarkOperator as O;
    if right == 0 && matches!(operator, O::Divide | O::Remainder) {
        return Err("division by zero".into());
    }
    let shift = || u32::try_from(right).ok().filter(|bits| *bits < 63);
    let result = match operator {
        O::Add => left.checked_add(right),
        O::Subtract => left.checked_sub(right),
        O::Multiply => left.checked_mul(right),
        // Rounded down, and the remainder has the sign of the divisor.
        O::Divide => {
            left.checked_div(right).map(|whole| whole - i64::from(left % right != 0 && (left < 0) != (right < 0)))
        }
        O::Remainder => {
            left.checked_rem(right).map(|rest| if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest })
        }
        O::BitOr => Some(left | right),
        O::BitXor => Some(left ^ right),
        O::BitAnd => Some(left & right),
        O::ShiftLeft => shift().and_then(|bits| left.checked_mul(1 << bits)),
        O::ShiftRight => shift().map(|bits| left >> bits),
        _ => None,
    };
    result.map(Value::Int).ok_or_else(|| "integer overflow".into())
}

fn unsupported(operator: StarlarkOperator, left: &Value, right: &Value) -> String {
    format!("Operation `{}` not supported for types `{}` and `{}`", operator.symbol(), left.kind(), right.kind())
}

/// The position of an index; negative ones count from the end.
fn place(index: i64, len: usize) -> HeapResult<usize> {
    let at = if index < 0 { index.checked_add_unsigned(len as u64) } else { Some(index) };
    at.and_then(|at| usize::try_from(at).ok())
        .filter(|at| *at < len)
        .ok_or_else(|| format!("Index `{index}` is out of bound"))
}

/// The positions that a slice selects.
fn chosen(len: usize, [start, stop, step]: [Option<i64>; 3]) -> HeapResult<Vec<usize>> {
    let (step, len) = (step.unwrap_or(1), i64::try_from(len).unwrap_or(i64::MAX));
    if step == 0 {
        return Err("a slice cannot have steps of zero".into());
    }
    // The positions before the first and after the last that can be selected.
    let (before, behind) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let clamp = |at: i64| (if at < 0 { at.saturating_add(len) } else { at }).clamp(before, behind);
    let (first, last) = if step > 0 { (0, len) } else { (len - 1, -1) };
    let (mut at, end) = (start.map_or(first, clamp), stop.map_or(last, clamp));
    let mut chosen = Vec::new();
    while if step > 0 { at < end } else { at > end } {
        chosen.extend(usize::try_from(at).ok());
        at = at.saturating_add(step);
    }
    Ok(chosen)
}
