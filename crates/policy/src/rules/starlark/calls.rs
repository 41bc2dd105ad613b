//! Calls of functions: those of the file, the built-in ones, and those of the host.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::Failure;
use super::builtins::Arguments;
use super::evaluate::{EvaluateResult, Evaluator, Flow, Host, Scope, WithSpan};
use super::heap::{Function, HeapResult};
use super::syntax::{Argument, Definition, Expression, Parameter, ParameterKind, Span};
use super::value::Value;

impl<H: Host> Evaluator<'_, H> {
    pub fn function(&mut self, definition: &Rc<Definition>, span: Span) -> EvaluateResult<Value> {
        self.heap.spend(1 + definition.parameters.len()).at(span)?;
        let defaults = definition.parameters.iter().map(|parameter| match &parameter.default {
            Some(default) => self.value(default).map(Some),
            None => Ok(None),
        });
        let defaults = defaults.collect::<EvaluateResult<_>>()?;
        self.heap.functions.push(Function { definition: Rc::clone(definition), scope: self.scope, defaults });
        Ok(Value::Function(self.heap.functions.len() - 1))
    }

    pub fn call(&mut self, function: &Expression, arguments: &[Argument], span: Span) -> EvaluateResult<Value> {
        let function = self.value(function)?;
        let arguments = self.arguments(arguments)?;
        match function {
            Value::Function(function) => {
                let function = self.heap.functions[function].clone();
                self.call_own(&function, arguments, span)
            }
            Value::Method(method) => {
                let (of, name) = self.heap.methods[method].clone();
                self.heap.call_method(&of, &name, arguments).at(span)
            }
            Value::Builtin(name) if H::FUNCTIONS.contains(&name) => {
                self.call_host(name, arguments, span).at(span)?;
                Ok(Value::None)
            }
            Value::Builtin(name) => self.heap.builtin(name, arguments).at(span),
            other => {
                Err(Failure { message: format!("Operation `call()` not supported on type `{}`", other.kind()), span })
            }
        }
    }

    fn arguments(&mut self, arguments: &[Argument]) -> EvaluateResult<Arguments> {
        let mut found = Arguments::default();
        for argument in arguments {
            match argument {
                Argument::Plain(value) => found.plain.push(self.value(value)?),
                Argument::Named(name, value) => found.named.push((name.clone(), self.value(value)?)),
                Argument::Each(list) => found.plain.extend(self.items(list)?),
                Argument::EachNamed(dict) => {
                    let Value::Dict(pairs) = self.value(dict)? else {
                        return Err(Failure { message: "only a dict can follow `**`".into(), span: dict.span });
                    };
                    for (key, value) in self.heap.dicts[pairs].clone() {
                        match key {
                            Value::Text(name) => found.named.push((name.to_string(), value)),
                            _ => return Err(Failure { message: "names must be texts".into(), span: dict.span }),
                        }
                    }
                }
            }
        }
        Ok(found)
    }

    fn call_host(&mut self, name: &str, arguments: Arguments, span: Span) -> HeapResult<()> {
        let mut plain = Vec::new();
        for value in &arguments.plain {
            plain.push((None, self.heap.plain(value)?));
        }
        for (name, value) in arguments.named {
            plain.push((Some(name), self.heap.plain(&value)?));
        }
        self.host.call(name, &plain, span)
    }

    fn call_own(&mut self, function: &Function, arguments: Arguments, span: Span) -> EvaluateResult<Value> {
        let names = self.bind(function, arguments).at(span)?;
        let outer = self.scope;
        self.scopes.push(Scope { names, outer: Some(function.scope) });
        self.scope = self.scopes.len() - 1;
        let done = self.deeper(span, |evaluator| evaluator.block(&function.definition.body));
        self.scope = outer;
        match done? {
            Flow::Return(value) => Ok(value),
            _ => Ok(Value::None),
        }
    }

    /// Binds the parameters to the arguments.
    fn bind(&mut self, function: &Function, arguments: Arguments) -> HeapResult<BTreeMap<String, Value>> {
        let Definition { name, parameters, .. } = &*function.definition;
        let mut named = arguments.named;
        let mut plain = arguments.plain.into_iter();
        let mut names = BTreeMap::new();
        for (Parameter { name: parameter, takes, .. }, default) in parameters.iter().zip(&function.defaults) {
            let value = match takes {
                ParameterKind::Rest => self.heap.tuple(plain.by_ref().collect())?,
                ParameterKind::NamedRest => {
                    let rest = std::mem::take(&mut named);
                    self.heap.dict(rest.into_iter().map(|(name, value)| (Value::text(&name), value)).collect())?
                }
                ParameterKind::One | ParameterKind::Named => {
                    let first = if *takes == ParameterKind::One { plain.next() } else { None };
                    let given = named.iter().position(|(name, _)| name == parameter).map(|at| named.remove(at).1);
                    if first.is_some() && given.is_some() {
                        return Err(format!("Argument `{parameter}` occurs more than once in call to {name}"));
                    }
                    let value = first.or(given).or_else(|| default.clone());
                    value.ok_or_else(|| format!("Missing parameter `{parameter}` for call to `{name}`"))?
                }
            };
            names.insert(parameter.clone(), value);
        }
        if let Some((extra, _)) = named.first() {
            return Err(format!("Found `{extra}` extra named parameter(s) for call to {name}"));
        }
        if plain.next().is_some() {
            return Err(format!("Found extra positional argument(s) for call to {name}"));
        }
        Ok(names)
    }
}
