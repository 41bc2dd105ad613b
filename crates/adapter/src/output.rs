//! [`Output`]: what a prompt is evaluated to. A plain [`Text`], or any type with a JSON Schema.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::schema::{self, SchemaError, StrictSchema, WRAPPED};

/// The result of a prompt: [`Text`], or any type that can be decoded and has a schema.
pub trait Output: Sized {
    /// The `outputSchema` of the turn; `None` for a plain text.
    fn output_schema() -> Result<Option<Value>, SchemaError>;

    /// The value of the model's final message.
    fn parse(text: &str) -> Result<Self, String>;
}

/// The final message as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(pub String);

impl Output for Text {
    fn output_schema() -> Result<Option<Value>, SchemaError> {
        Ok(None)
    }

    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }
}

impl<T: DeserializeOwned + JsonSchema> Output for T {
    fn output_schema() -> Result<Option<Value>, SchemaError> {
        schema::strict::<T>().map(|strict| Some(strict.schema))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let StrictSchema { wrapped, .. } = schema::strict::<T>().map_err(|error| error.to_string())?;
        let decoded = if wrapped {
            let mut value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
            let Some(inner) = value.get_mut(WRAPPED) else { return Err(format!("missing field `{WRAPPED}`")) };
            serde_json::from_value(inner.take())
        } else {
            serde_json::from_str(text)
        };
        decoded.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    struct Point {
        x: i32,
        y: Option<i32>,
    }

    #[test]
    fn objects_and_wrapped_values_are_decoded() {
        assert_eq!(Point::parse(r#" {"x":1,"y":null} "#), Ok(Point { x: 1, y: None }));
        assert_eq!(Vec::<i32>::parse(r#"{"value":[1,2]}"#), Ok(vec![1, 2]));
        assert_eq!(Text::parse("no { JSON"), Ok(Text("no { JSON".into())));
    }

    #[test]
    fn a_text_that_does_not_fit_is_an_error_with_its_reason() {
        assert!(Point::parse("I cannot.").is_err_and(|error| error.contains("expected value")));
        assert!(Point::parse(r#"{"y":1}"#).is_err_and(|error| error.contains("missing field `x`")));
        assert_eq!(Vec::<i32>::parse("{}"), Err("missing field `value`".into()));
    }
}
