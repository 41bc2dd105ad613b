//! Forms of MCP servers: the description of each field, and the value of a typed line.

use loomd_client::protocol::{
    JsonValue, McpElicitationConstOption, McpElicitationEnumSchema, McpElicitationMultiSelectEnumSchema,
    McpElicitationNumberType, McpElicitationPrimitiveSchema, McpElicitationSchema,
    McpElicitationSingleSelectEnumSchema, McpElicitationStringFormat,
};

/// One field of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub title: String,
    description: Option<String>,
    required: bool,
    default: Option<JsonValue>,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Text { shortest: usize, longest: Option<usize>, format: Option<McpElicitationStringFormat> },
    Number { whole: bool, least: Option<f64>, most: Option<f64> },
    YesOrNo,
    One(Vec<FieldOption>),
    Several { choices: Vec<FieldOption>, fewest: usize, most: Option<usize> },
}

#[derive(Clone, Debug, PartialEq)]
struct FieldOption {
    value: String,
    title: String,
}

/// The value of a field; `None` leaves it empty.
pub type FieldValue = Option<JsonValue>;

pub fn fields(schema: McpElicitationSchema) -> Vec<Field> {
    let required = schema.required.unwrap_or_default();
    let is_required = |name: &String| required.contains(name);
    schema.properties.into_iter().map(|(name, schema)| Field::new(is_required(&name), name, schema)).collect()
}

impl Field {
    fn new(required: bool, name: String, schema: McpElicitationPrimitiveSchema) -> Self {
        use McpElicitationEnumSchema as Enum;
        use McpElicitationMultiSelectEnumSchema as Multi;
        use McpElicitationPrimitiveSchema as Schema;
        use McpElicitationSingleSelectEnumSchema as Single;
        let (title, description, default, kind) = match schema {
            Schema::String(text) => {
                let (shortest, longest) = (text.min_length.unwrap_or(0) as usize, text.max_length.map(|l| l as usize));
                let kind = Kind::Text { shortest, longest, format: text.format };
                (text.title, text.description, text.default.map(Into::into), kind)
            }
            Schema::Number(number) => {
                let whole = number.r#type == McpElicitationNumberType::Integer;
                let kind = Kind::Number { whole, least: number.minimum, most: number.maximum };
                (number.title, number.description, number.default.and_then(|value| json_number(value, whole)), kind)
            }
            Schema::Boolean(yes) => (yes.title, yes.description, yes.default.map(Into::into), Kind::YesOrNo),
            Schema::Enum(Enum::SingleSelectEnum(Single::UntitledSingleSelectEnum(one))) => {
                (one.title, one.description, one.default.map(Into::into), Kind::One(untitled(one.r#enum)))
            }
            Schema::Enum(Enum::SingleSelectEnum(Single::TitledSingleSelectEnum(one))) => {
                (one.title, one.description, one.default.map(Into::into), Kind::One(titled(one.one_of)))
            }
            Schema::Enum(Enum::LegacyTitledEnum(one)) => {
                let titles = one.enum_names.unwrap_or_default();
                let mut choices = untitled(one.r#enum);
                choices.iter_mut().zip(titles).for_each(|(choice, title)| choice.title = title);
                (one.title, one.description, one.default.map(Into::into), Kind::One(choices))
            }
            Schema::Enum(Enum::MultiSelectEnum(Multi::UntitledMultiSelectEnum(several))) => {
                let kind = several_of(untitled(several.items.r#enum), several.min_items, several.max_items);
                (several.title, several.description, several.default.map(Into::into), kind)
            }
            Schema::Enum(Enum::MultiSelectEnum(Multi::TitledMultiSelectEnum(several))) => {
                let kind = several_of(titled(several.items.any_of), several.min_items, several.max_items);
                (several.title, several.description, several.default.map(Into::into), kind)
            }
        };
        Self { title: title.unwrap_or_else(|| name.clone()), name, description, required, default, kind }
    }

    /// The lines shown before input.
    pub fn details(&self) -> Vec<String> {
        let empty = match &self.default {
            Some(value) => Some(format!("(Enter for {})", plain(value))),
            None => (!self.required).then(|| "(Enter to leave it empty)".to_owned()),
        };
        self.description.iter().cloned().chain(self.kind.expected()).chain(empty).collect()
    }

    /// The options to choose from, as lines.
    pub fn choices(&self) -> Vec<String> {
        let (Kind::One(choices) | Kind::Several { choices, .. }) = &self.kind else { return Vec::new() };
        choices.iter().zip(1..).map(|(choice, number)| format!("{number}  {}", choice.title)).collect()
    }

    /// Returns the value of a typed line; `None` if it is invalid.
    pub fn parse(&self, line: &str) -> Option<FieldValue> {
        if line.is_empty() {
            return (self.default.is_some() || !self.required).then(|| self.default.clone());
        }
        self.kind.parse(line).map(Some)
    }
}

impl Kind {
    /// A description of the valid input, unless any text is valid.
    fn expected(&self) -> Option<String> {
        let range = |least: Option<String>, most: Option<String>| match (least, most) {
            (None, None) => String::new(),
            (Some(least), None) => format!(", at least {least}"),
            (None, Some(most)) => format!(", at most {most}"),
            (Some(least), Some(most)) => format!(", {least} to {most}"),
        };
        let number = |number: &f64| number.to_string();
        match self {
            Self::Text { shortest, longest, format } => {
                let word = format.map(|format| match format {
                    McpElicitationStringFormat::Email => "an e-mail address",
                    McpElicitationStringFormat::Uri => "a URI",
                    McpElicitationStringFormat::Date => "a date, as 2025-12-31",
                    McpElicitationStringFormat::DateTime => "a time, as 2025-12-31T23:59:59Z",
                });
                let length = range((*shortest > 0).then(|| shortest.to_string()), longest.map(|l| l.to_string()));
                let length = if length.is_empty() { length } else { format!("{length} characters") };
                (word.is_some() || !length.is_empty()).then(|| format!("({}{length})", word.unwrap_or("text")))
            }
            Self::Number { whole, least, most } => {
                let word = if *whole { "a whole number" } else { "a number" };
                Some(format!("({word}{})", range(least.as_ref().map(number), most.as_ref().map(number))))
            }
            Self::YesOrNo => Some("(y or n)".to_owned()),
            Self::One(_) => None,
            Self::Several { fewest, most, .. } => {
                let count = range((*fewest > 0).then(|| fewest.to_string()), most.map(|most| most.to_string()));
                Some(format!("(numbers with commas between them{count})"))
            }
        }
    }

    fn parse(&self, line: &str) -> Option<JsonValue> {
        match self {
            Self::Text { shortest, longest, .. } => {
                let length = line.chars().count();
                (length >= *shortest && longest.is_none_or(|longest| length <= longest)).then(|| line.into())
            }
            Self::Number { whole, least, most } => {
                let value: f64 = line.parse().ok()?;
                let fits = least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most);
                fits.then(|| json_number(value, *whole)).flatten()
            }
            Self::YesOrNo => match line.to_lowercase().as_str() {
                "y" | "yes" | "true" => Some(true.into()),
                "n" | "no" | "false" => Some(false.into()),
                _ => None,
            },
            Self::One(choices) => Some(pick(choices, line)?.into()),
            Self::Several { choices, fewest, most } => {
                let picked: Option<Vec<&str>> = line.split(',').map(|word| pick(choices, word.trim())).collect();
                let picked = picked?;
                let fits = picked.len() >= *fewest && most.is_none_or(|most| picked.len() <= most);
                fits.then(|| picked.into())
            }
        }
    }
}

/// An option by its number, value or title.
fn pick<'a>(choices: &'a [FieldOption], word: &str) -> Option<&'a str> {
    let numbered = word.parse().ok().and_then(|number: usize| choices.get(number.checked_sub(1)?));
    let named = || choices.iter().find(|choice| choice.value == word || choice.title == word);
    numbered.or_else(named).map(|choice| choice.value.as_str())
}

/// Integers are written without a decimal point; those that a float cannot represent exactly are invalid.
fn json_number(value: f64, whole: bool) -> Option<JsonValue> {
    const COUNTABLE: f64 = 9_007_199_254_740_992.0;
    match whole {
        true if value.fract() != 0.0 || value.abs() > COUNTABLE => None,
        true => Some((value as i64).into()),
        false => serde_json::Number::from_f64(value).map(Into::into),
    }
}

fn untitled(values: Vec<String>) -> Vec<FieldOption> {
    values.into_iter().map(|value| FieldOption { title: value.clone(), value }).collect()
}

fn titled(options: Vec<McpElicitationConstOption>) -> Vec<FieldOption> {
    options.into_iter().map(|option| FieldOption { value: option.r#const, title: option.title }).collect()
}

fn several_of(choices: Vec<FieldOption>, fewest: Option<u64>, most: Option<u64>) -> Kind {
    let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    Kind::Several { choices, fewest: fewest.map_or(0, count), most: most.map(count) }
}

/// A value as a user would type it.
fn plain(value: &JsonValue) -> String {
    match value {
        JsonValue::String(text) => text.clone(),
        JsonValue::Bool(yes) => if *yes { "y" } else { "n" }.to_owned(),
        JsonValue::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The only field of a form with this property.
    fn field(property: JsonValue, required: bool) -> Field {
        let required: &[&str] = if required { &["it"] } else { &[] };
        let schema = json!({ "type": "object", "properties": { "it": property }, "required": required });
        fields(serde_json::from_value(schema).unwrap()).remove(0)
    }

    #[test]
    fn typed_lines_become_values_or_are_invalid() {
        let check = |property: JsonValue, lines: &[(&str, Option<JsonValue>)]| {
            let field = field(property.clone(), true);
            for (line, value) in lines {
                assert_eq!(field.parse(line), value.clone().map(Some), "{property} {line:?}");
            }
        };
        check(
            json!({ "type": "string", "minLength": 2, "maxLength": 3 }),
            &[("", None), ("é", None), ("éé", Some(json!("éé"))), ("12", Some(json!("12"))), ("four", None)],
        );
        check(
            json!({ "type": "integer", "minimum": 1, "maximum": 9 }),
            &[("0", None), ("9", Some(json!(9))), ("1.5", None), ("many", None), ("1e1", None)],
        );
        check(json!({ "type": "integer" }), &[("-3", Some(json!(-3))), ("1e300", None), ("inf", None)]);
        check(json!({ "type": "number" }), &[("1.5", Some(json!(1.5))), ("NaN", None), ("inf", None)]);
        check(json!({ "type": "boolean" }), &[("Y", Some(json!(true))), ("no", Some(json!(false))), ("1", None)]);
        check(
            json!({ "type": "string", "enum": ["red", "blue"] }),
            &[("1", Some(json!("red"))), ("blue", Some(json!("blue"))), ("3", None), ("green", None)],
        );
        check(
            json!({ "type": "string", "oneOf": [{ "const": "r", "title": "Red" }] }),
            &[("1", Some(json!("r"))), ("Red", Some(json!("r"))), ("r", Some(json!("r")))],
        );
        check(
            json!({ "type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"] }),
            &[("2", Some(json!("b"))), ("b", Some(json!("b")))],
        );
        check(
            json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b", "c"] }, "minItems": 1, "maxItems": 2 }),
            &[("1, c", Some(json!(["a", "c"]))), ("1,2,3", None), ("x", None), (",", None)],
        );
        check(
            json!({ "type": "array", "items": { "anyOf": [{ "const": "a", "title": "A" }] } }),
            &[("A", Some(json!(["a"])))],
        );
    }

    #[test]
    fn an_empty_line_is_the_default_or_empty() {
        let text = json!({ "type": "string" });
        assert_eq!(field(text.clone(), true).parse(""), None);
        assert_eq!(field(text, false).parse(""), Some(None));
        let preset = json!({ "type": "integer", "default": 5 });
        assert_eq!(field(preset, true).parse(""), Some(Some(json!(5))));
    }

    #[test]
    fn fields_describe_their_valid_input() {
        for (property, required, details) in [
            (json!({ "type": "string" }), true, vec![]),
            (
                json!({ "type": "string", "description": "Yours.", "format": "email", "maxLength": 50 }),
                false,
                vec!["Yours.", "(an e-mail address, at most 50 characters)", "(Enter to leave it empty)"],
            ),
            (
                json!({ "type": "integer", "minimum": 1, "maximum": 9, "default": 5 }),
                true,
                vec!["(a whole number, 1 to 9)", "(Enter for 5)"],
            ),
            (json!({ "type": "boolean", "default": false }), false, vec!["(y or n)", "(Enter for n)"]),
            (
                json!({ "type": "array", "items": { "type": "string", "enum": ["a"] }, "minItems": 1 }),
                true,
                vec!["(numbers with commas between them, at least 1)"],
            ),
        ] {
            assert_eq!(field(property.clone(), required).details(), details, "{property}");
        }
    }
}
