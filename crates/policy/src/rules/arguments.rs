//! The arguments of calls in a rules file.

use super::RuleDecision;
use super::starlark::HostValue;
use crate::script::base_name;

/// Arguments in the order of the parameters.
pub(super) fn bind<'a, const N: usize>(
    function: &str,
    arguments: &'a [(Option<String>, HostValue)],
    names: [&str; N],
) -> Result<[Option<&'a HostValue>; N], String> {
    let mut bound = [None; N];
    for (index, (name, value)) in arguments.iter().enumerate() {
        let place = match name {
            Some(name) => names.iter().position(|known| *known == name.as_str()),
            None => Some(index).filter(|index| *index < N),
        };
        let place = place.ok_or_else(|| match name {
            Some(name) => format!("Found `{name}` extra named parameter(s) for call to {function}"),
            None => format!("Found extra positional argument(s) for call to {function}"),
        })?;
        if bound[place].replace(value).is_some() {
            return Err(format!("Argument `{}` occurs more than once in call to {function}", names[place]));
        }
    }
    Ok(bound)
}

pub(super) fn required<'a>(value: Option<&'a HostValue>, function: &str, name: &str) -> Result<&'a HostValue, String> {
    value.ok_or_else(|| format!("Missing parameter `{name}` for call to `{function}`"))
}

pub(super) fn text<'a>(value: &'a HostValue, name: &str) -> Result<&'a str, String> {
    match value {
        HostValue::Text(text) => Ok(text),
        other => Err(format!("Type of parameter `{name}` doesn't match, expected `str`, actual `{}`", other.kind())),
    }
}

pub(super) fn list<'a>(value: &'a HostValue, name: &str) -> Result<&'a [HostValue], String> {
    match value {
        HostValue::List(items) => Ok(items),
        other => Err(format!("Type of parameter `{name}` doesn't match, expected `list`, actual `{}`", other.kind())),
    }
}

pub(super) fn decision(value: Option<&HostValue>) -> Result<RuleDecision, String> {
    match value.map(|value| text(value, "decision")).transpose()? {
        None | Some("allow") => Ok(RuleDecision::Allow),
        Some("prompt") => Ok(RuleDecision::Prompt),
        Some("forbidden") => Ok(RuleDecision::Forbidden),
        Some(other) => Err(format!("invalid decision: {other}")),
    }
}

pub(super) fn justification(value: Option<&HostValue>) -> Result<Option<String>, String> {
    let why = value.map(|value| text(value, "justification")).transpose()?;
    match why {
        Some(why) if why.trim().is_empty() => Err("invalid rule: justification cannot be empty".into()),
        why => Ok(why.map(str::to_owned)),
    }
}

pub(super) fn pattern(value: &HostValue) -> Result<Vec<Vec<String>>, String> {
    let invalid = |what: &str| format!("invalid pattern element: {what}");
    let items = list(value, "pattern")?;
    if items.is_empty() {
        return Err(invalid("pattern cannot be empty"));
    }
    let element = |item: &HostValue| match item {
        HostValue::Text(word) => Ok(vec![word.clone()]),
        HostValue::List(alternatives) if alternatives.is_empty() => {
            Err(invalid("pattern alternatives cannot be empty"))
        }
        HostValue::List(alternatives) => alternatives
            .iter()
            .map(|alternative| match alternative {
                HostValue::Text(word) => Ok(word.clone()),
                other => Err(invalid(&format!("pattern alternative must be a string (got {})", other.kind()))),
            })
            .collect(),
        other => Err(invalid(&format!("pattern element must be a string or list of strings (got {})", other.kind()))),
    };
    items.iter().map(element).collect()
}

pub(super) fn examples(value: Option<&HostValue>, name: &str) -> Result<Vec<Vec<String>>, String> {
    let invalid = |what: &str| format!("invalid example: {what}");
    let Some(value) = value else { return Ok(Vec::new()) };
    let words = |example: &HostValue| {
        let words = match example {
            HostValue::Text(line) => {
                shlex::split(line).ok_or_else(|| invalid("example string has invalid shell syntax"))?
            }
            HostValue::List(words) => {
                words.iter().map(|word| text(word, name).map(str::to_owned)).collect::<Result<_, _>>()?
            }
            other => {
                return Err(invalid(&format!("example must be a string or list of strings (got {})", other.kind())));
            }
        };
        if words.is_empty() { Err(invalid("example cannot be empty")) } else { Ok(words) }
    };
    list(value, name)?.iter().map(words).collect()
}

pub(super) fn executables(name: &str, paths: &[HostValue]) -> Result<Vec<String>, String> {
    let invalid = |what: String| Err(format!("invalid rule: host_executable {what}"));
    if name.is_empty() {
        return invalid("name cannot be empty".into());
    }
    if name.contains('/') {
        return invalid(format!("name must be a bare executable name (got {name})"));
    }
    let mut found = Vec::new();
    for path in paths {
        let path = text(path, "paths")?;
        if !path.starts_with('/') {
            return invalid(format!("paths must be absolute (got {path})"));
        }
        if base_name(path) != name {
            return invalid(format!("path `{path}` must have basename `{name}`"));
        }
        found.push(path.to_owned());
    }
    Ok(found)
}
