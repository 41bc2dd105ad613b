//! Evaluates the statements and expressions of a file.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::Failure;
use super::builtins::BUILTINS;
use super::heap::{Heap, HeapResult};
use super::lexer::SyntaxError;
use super::methods;
use super::parse::parse;
use super::syntax::{
    AssignmentTarget, Clause, Expression, ExpressionKind, FormatPiece, Span, StarlarkOperator, Statement,
};
use super::value::{HostValue, Value};

/// The deepest nesting of expressions, blocks and calls during evaluation; each uses stack.
const MAX_DEPTH: usize = 256;

/// The functions that a file can call beside the built-in ones.
pub(in super::super) trait Host {
    /// The names of its functions.
    const FUNCTIONS: &'static [&'static str];

    fn call(&mut self, function: &str, arguments: &[(Option<String>, HostValue)], call: Span) -> Result<(), String>;
}

/// Evaluates a file.
pub(in super::super) fn run<H: Host>(source: &str, host: &mut H) -> Result<(), Failure> {
    let statements =
        parse(source).map_err(|SyntaxError { message, at }| Failure { message, span: Span { start: at, end: at } })?;
    let mut evaluator = Evaluator { host, heap: Heap::new(), scopes: vec![Scope::default()], scope: 0, depth: 0 };
    evaluator.block(&statements)?;
    Ok(())
}

pub(super) struct Evaluator<'a, H> {
    pub host: &'a mut H,
    pub heap: Heap,
    /// All scopes. None is removed, because functions may refer to them.
    pub scopes: Vec<Scope>,
    /// The scope in which names are looked up first.
    pub scope: usize,
    depth: usize,
}

#[derive(Default)]
pub(super) struct Scope {
    pub names: BTreeMap<String, Value>,
    pub outer: Option<usize>,
}

/// How a block ended.
pub(super) enum Flow {
    Next,
    Break,
    Continue,
    Return(Value),
}

pub(super) type EvaluateResult<T> = Result<T, Failure>;

/// Adds the position to an error.
pub(super) trait WithSpan<T> {
    fn at(self, span: Span) -> EvaluateResult<T>;
}

impl<T> WithSpan<T> for HeapResult<T> {
    fn at(self, span: Span) -> EvaluateResult<T> {
        self.map_err(|message| Failure { message, span })
    }
}

impl<H: Host> Evaluator<'_, H> {
    pub fn block(&mut self, statements: &[Statement]) -> EvaluateResult<Flow> {
        for statement in statements {
            match self.statement(statement)? {
                Flow::Next => {}
                ended => return Ok(ended),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &Statement) -> EvaluateResult<Flow> {
        match statement {
            Statement::Expression(expression) => {
                self.value(expression)?;
            }
            Statement::Assign(target, value) => {
                let value = self.value(value)?;
                self.assign(target, value)?;
            }
            Statement::Augment(target, operator, value) => self.augment(target, *operator, value)?,
            Statement::If(branches, otherwise) => {
                for (condition, body) in branches {
                    if self.is_true(condition)? {
                        return self.block(body);
                    }
                }
                return self.block(otherwise);
            }
            Statement::For(target, list, body) => return self.for_loop(target, list, body),
            Statement::Define(definition) => {
                let function = self.function(definition, Span::default())?;
                self.set(&definition.name, function);
            }
            Statement::Return(None) => return Ok(Flow::Return(Value::None)),
            Statement::Return(Some(value)) => return Ok(Flow::Return(self.value(value)?)),
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn for_loop(&mut self, target: &AssignmentTarget, list: &Expression, body: &[Statement]) -> EvaluateResult<Flow> {
        for item in self.items(list)? {
            self.heap.spend(1).at(list.span)?;
            self.assign(target, item)?;
            match self.block(body)? {
                Flow::Next | Flow::Continue => {}
                Flow::Break => break,
                returned => return Ok(returned),
            }
        }
        Ok(Flow::Next)
    }

    fn assign(&mut self, target: &AssignmentTarget, value: Value) -> EvaluateResult<()> {
        match target {
            AssignmentTarget::Name(name) => self.set(name, value),
            AssignmentTarget::Several(targets, span) => {
                let items = self.heap.items(&value).at(*span)?;
                if items.len() != targets.len() {
                    let message = format!("Unpacked {} values but expected {}", items.len(), targets.len());
                    return Err(Failure { message, span: *span });
                }
                for (target, item) in targets.iter().zip(items) {
                    self.assign(target, item)?;
                }
            }
            AssignmentTarget::Element(whole, index, span) => {
                let (whole, index) = (self.value(whole)?, self.value(index)?);
                self.heap.set_element(&whole, index, value).at(*span)?;
            }
        }
        Ok(())
    }

    fn augment(
        &mut self,
        target: &AssignmentTarget,
        operator: StarlarkOperator,
        value: &Expression,
    ) -> EvaluateResult<()> {
        match target {
            AssignmentTarget::Name(name) => {
                let before = self.look_up(name).at(value.span)?;
                let more = self.value(value)?;
                // A list is extended in place, for all references to it.
                if let (Value::List(list), StarlarkOperator::Add, Value::List(_)) = (&before, operator, &more) {
                    let more = self.heap.items(&more).at(value.span)?;
                    self.heap.lists[*list].extend(more);
                    return Ok(());
                }
                let after = self.heap.operate(operator, before, more).at(value.span)?;
                self.set(name, after);
            }
            AssignmentTarget::Element(whole, index, span) => {
                let (whole, index) = (self.value(whole)?, self.value(index)?);
                let before = self.heap.element(&whole, &index).at(*span)?;
                let more = self.value(value)?;
                let after = self.heap.operate(operator, before, more).at(*span)?;
                self.heap.set_element(&whole, index, after).at(*span)?;
            }
            AssignmentTarget::Several(..) => {}
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: Value) {
        self.scopes[self.scope].names.insert(name.to_owned(), value);
    }

    fn look_up(&mut self, name: &str) -> HeapResult<Value> {
        let mut scope = Some(self.scope);
        while let Some(at) = scope {
            if let Some(value) = self.scopes[at].names.get(name) {
                return Ok(value.clone());
            }
            scope = self.scopes[at].outer;
        }
        match name {
            "None" => return Ok(Value::None),
            "True" => return Ok(Value::Bool(true)),
            "False" => return Ok(Value::Bool(false)),
            _ => {}
        }
        let mut known = BUILTINS.iter().chain(H::FUNCTIONS);
        known
            .find(|known| **known == name)
            .map(|known| Value::Builtin(known))
            .ok_or_else(|| format!("Variable `{name}` not found"))
    }

    /// Runs something one step deeper.
    pub fn deeper<T>(&mut self, span: Span, work: impl FnOnce(&mut Self) -> EvaluateResult<T>) -> EvaluateResult<T> {
        self.heap.spend(1).at(span)?;
        if self.depth >= MAX_DEPTH {
            return Err(Failure { message: "calls and values are too deeply nested".into(), span });
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    pub fn value(&mut self, expression: &Expression) -> EvaluateResult<Value> {
        self.deeper(expression.span, |evaluator| evaluator.value_of(expression))
    }

    /// Each kind has a function of its own, so that this one uses little stack.
    fn value_of(&mut self, expression: &Expression) -> EvaluateResult<Value> {
        let span = expression.span;
        match &expression.kind {
            ExpressionKind::Text(text) => Ok(Value::Text(Rc::clone(text))),
            ExpressionKind::Number(number) => Ok(Value::Int(*number)),
            ExpressionKind::Name(name) => self.look_up(name).at(span),
            ExpressionKind::Format(pieces) => self.formatted(pieces).at(span),
            ExpressionKind::List(items) => self.several(items).and_then(|items| self.heap.list(items).at(span)),
            ExpressionKind::Tuple(items) => self.several(items).and_then(|items| self.heap.tuple(items).at(span)),
            ExpressionKind::Dict(pairs) => self.dict(pairs, span),
            ExpressionKind::ListOf(item, clauses) => self.list_of(item, clauses, span),
            ExpressionKind::DictOf(item, clauses) => self.dict_of(item, clauses, span),
            ExpressionKind::Negate(value) => self.negated(value, span),
            ExpressionKind::Not(value) => Ok(Value::Bool(!self.is_true(value)?)),
            ExpressionKind::And(left, right) => self.either(left, right, false),
            ExpressionKind::Or(left, right) => self.either(left, right, true),
            ExpressionKind::Binary(operator, left, right) => {
                let left = self.value(left)?;
                let right = self.value(right)?;
                self.heap.operate(*operator, left, right).at(span)
            }
            ExpressionKind::Choice(parts) => {
                let [value, condition, otherwise] = &**parts;
                let chosen = if self.is_true(condition)? { value } else { otherwise };
                self.value(chosen)
            }
            ExpressionKind::Call(function, arguments) => self.call(function, arguments, span),
            ExpressionKind::Attribute(value, name) => self.attribute(value, name, span),
            ExpressionKind::Element(value, index) => {
                let value = self.value(value)?;
                let index = self.value(index)?;
                self.heap.element(&value, &index).at(span)
            }
            ExpressionKind::Slice(value, parts) => self.slice(value, parts, span),
            ExpressionKind::Lambda(definition) => self.function(definition, span),
        }
    }

    fn is_true(&mut self, condition: &Expression) -> EvaluateResult<bool> {
        let value = self.value(condition)?;
        Ok(self.heap.truth(&value))
    }

    /// The first of two values whose truth is `wanted`, else the second.
    fn either(&mut self, left: &Expression, right: &Expression, wanted: bool) -> EvaluateResult<Value> {
        let value = self.value(left)?;
        if self.heap.truth(&value) == wanted { Ok(value) } else { self.value(right) }
    }

    pub fn items(&mut self, list: &Expression) -> EvaluateResult<Vec<Value>> {
        let value = self.value(list)?;
        self.heap.items(&value).at(list.span)
    }

    fn several(&mut self, items: &[Expression]) -> EvaluateResult<Vec<Value>> {
        items.iter().map(|item| self.value(item)).collect()
    }

    fn formatted(&mut self, pieces: &[FormatPiece]) -> HeapResult<Value> {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                FormatPiece::Text(plain) => text.push_str(plain),
                FormatPiece::Name(name) => {
                    let value = self.look_up(name)?;
                    text.push_str(&self.heap.shown(&value)?);
                }
            }
        }
        self.heap.text(text)
    }

    fn dict(&mut self, pairs: &[(Expression, Expression)], span: Span) -> EvaluateResult<Value> {
        let pairs = pairs.iter().map(|(key, value)| Ok((self.value(key)?, self.value(value)?)));
        let pairs = pairs.collect::<EvaluateResult<_>>()?;
        self.heap.dict(pairs).at(span)
    }

    fn negated(&mut self, value: &Expression, span: Span) -> EvaluateResult<Value> {
        match self.value(value)? {
            Value::Int(number) => {
                number.checked_neg().map(Value::Int).ok_or_else(|| "integer overflow".to_owned()).at(span)
            }
            other => Err(Failure { message: format!("Operation `-` not supported on type `{}`", other.kind()), span }),
        }
    }

    fn slice(&mut self, value: &Expression, parts: &[Option<Box<Expression>>; 3], span: Span) -> EvaluateResult<Value> {
        let value = self.value(value)?;
        let mut bounds = [None; 3];
        for (bound, part) in bounds.iter_mut().zip(parts) {
            let Some(part) = part else { continue };
            *bound = match self.value(part)? {
                Value::Int(number) => Some(number),
                Value::None => None,
                other => {
                    let message = format!("a slice is bounded by ints, not `{}`", other.kind());
                    return Err(Failure { message, span: part.span });
                }
            };
        }
        self.heap.slice(&value, bounds).at(span)
    }

    fn attribute(&mut self, value: &Expression, name: &str, span: Span) -> EvaluateResult<Value> {
        let value = self.value(value)?;
        if !methods::exists(&value, name) {
            let message = format!("Object of type `{}` has no attribute `{name}`", value.kind());
            return Err(Failure { message, span });
        }
        self.heap.method(value, name).at(span)
    }

    fn list_of(&mut self, item: &Expression, clauses: &[Clause], span: Span) -> EvaluateResult<Value> {
        let mut items = Vec::new();
        self.inside(|evaluator| {
            evaluator.each(clauses, &mut |evaluator| {
                items.push(evaluator.value(item)?);
                Ok(())
            })
        })?;
        self.heap.list(items).at(span)
    }

    fn dict_of(&mut self, item: &(Expression, Expression), clauses: &[Clause], span: Span) -> EvaluateResult<Value> {
        let mut pairs = Vec::new();
        self.inside(|evaluator| {
            evaluator.each(clauses, &mut |evaluator| {
                pairs.push((evaluator.value(&item.0)?, evaluator.value(&item.1)?));
                Ok(())
            })
        })?;
        self.heap.dict(pairs).at(span)
    }

    /// Runs something in a new scope.
    fn inside<T>(&mut self, work: impl FnOnce(&mut Self) -> EvaluateResult<T>) -> EvaluateResult<T> {
        let outer = self.scope;
        self.scopes.push(Scope { names: BTreeMap::new(), outer: Some(outer) });
        self.scope = self.scopes.len() - 1;
        let result = work(self);
        self.scope = outer;
        result
    }

    fn each(
        &mut self,
        clauses: &[Clause],
        found: &mut dyn FnMut(&mut Self) -> EvaluateResult<()>,
    ) -> EvaluateResult<()> {
        match clauses.split_first() {
            None => found(self),
            Some((Clause::If(condition), rest)) => {
                if self.is_true(condition)? {
                    self.each(rest, found)
                } else {
                    Ok(())
                }
            }
            Some((Clause::For(target, list), rest)) => {
                for item in self.items(list)? {
                    self.assign(target, item)?;
                    self.each(rest, found)?;
                }
                Ok(())
            }
        }
    }
}
