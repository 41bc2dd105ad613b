//! Queries and forms.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Encodes the fields of a query or form.
pub fn encoded<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    /// All but the unreserved characters.
    const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    let field = |(name, value)| format!("{name}={}", utf8_percent_encode(value, RESERVED));
    fields.into_iter().map(field).collect::<Vec<_>>().join("&")
}

/// Returns a decoded field of a query; the first if there are several.
pub fn field(query: &str, name: &str) -> Option<String> {
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let mut fields = query.split('&').map(|field| field.split_once('=').unwrap_or((field, "")));
    fields.find(|(key, _)| decoded(key) == name).map(|(_, value)| decoded(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn query_fields_are_decoded() {
        for (query, expected) in [
            ("state=1&code=a+b%2Fc%2b", Some("a b/c+")),
            ("code=&code=2", Some("")),
            ("code", Some("")),
            ("%63ode=x", Some("x")),
            ("codes=x", None),
            ("", None),
        ] {
            assert_eq!(field(query, "code").as_deref(), expected, "{query}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes_to_itself(value in ".*", other in ".*") {
            let query = encoded([("a", other.as_str()), ("code", value.as_str())]);
            prop_assert_eq!(field(&query, "code"), Some(value));
        }

        #[test]
        fn any_query_is_read_without_a_panic(query in ".*") {
            field(&query, "code");
        }
    }
}
