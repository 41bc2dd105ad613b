//! Markdown with parameters: `${name}` is replaced by a value, once; `$${` is the text `${`. Any other `$` is a `$`.

use std::collections::BTreeMap;

pub(super) struct Template<'a>(Vec<Part<'a>>);

enum Part<'a> {
    Text(&'a str),
    Param(&'a str),
}

impl<'a> Template<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            if rest[..at].ends_with('$') {
                // The first of the two `$` escapes.
                parts.push(Part::Text(&rest[..at - 1]));
                parts.push(Part::Text("${"));
                rest = &rest[at + 2..];
                continue;
            }
            parts.push(Part::Text(&rest[..at]));
            let Some(length) = rest[at..].find('}') else {
                return Err("a `${` has no `}`; write `$${` for the text".into());
            };
            let name = &rest[at + 2..at + length];
            if !is_name(name) {
                return Err(format!("`${{{name}}}` is no parameter; write `$${{` for the text"));
            }
            parts.push(Part::Param(name));
            rest = &rest[at + length + 1..];
        }
        parts.push(Part::Text(rest));
        Ok(Self(parts))
    }

    /// The names of the parameters, in order, repeated as in the text.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter_map(|part| match part {
            Part::Param(name) => Some(*name),
            Part::Text(_) => None,
        })
    }

    /// Replaces parameters; one without a value becomes empty.
    pub(super) fn fill(&self, params: &BTreeMap<String, String>) -> String {
        let value = |part: &Part<'a>| match part {
            Part::Text(text) => (*text).to_owned(),
            Part::Param(name) => params.get(*name).cloned().unwrap_or_default(),
        };
        self.0.iter().map(value).collect()
    }
}

pub(super) fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(template: &str, expected: Result<&str, &str>) {
        let params = [("a".to_owned(), "1".to_owned()), ("long_name".to_owned(), "${a}".to_owned())].into();
        let filled = Template::parse(template).map(|template| template.fill(&params));
        match expected {
            Ok(text) => assert_eq!(filled.as_deref(), Ok(text), "{template}"),
            Err(words) => assert!(filled.as_ref().is_err_and(|error| error.contains(words)), "{template}: {filled:?}"),
        }
    }

    #[test]
    fn parameters_are_replaced_once_and_escapes_stay_text() {
        check("", Ok(""));
        check("${a}${a} is ${a}", Ok("11 is 1"));
        check("value: ${long_name}", Ok("value: ${a}"));
        check("$HOME costs 5$, $$ and $${a}", Ok("$HOME costs 5$, $$ and ${a}"));
        check("$$${a}", Ok("$${a}"));
        check("${a", Err("has no `}`"));
        check("${}", Err("is no parameter"));
        check("${a b}", Err("`${a b}` is no parameter"));
        check("${1a}", Err("is no parameter"));
    }

    proptest! {
        #[test]
        fn any_text_survives_when_its_openings_are_escaped(text in "[a${}é ]{0,40}") {
            let escaped = text.replace("${", "$${");
            // `$` right before an opening would join the escape, so such texts are left out.
            prop_assume!(!text.contains("$${"));
            let filled = Template::parse(&escaped).unwrap().fill(&BTreeMap::new());
            prop_assert_eq!(filled, text);
        }

        #[test]
        fn values_are_never_read_as_templates(value in ".{0,40}") {
            let params = [("a".to_owned(), value.clone())].into();
            prop_assert_eq!(Template::parse("<${a}>").unwrap().fill(&params), format!("<{value}>"));
        }
    }
}
