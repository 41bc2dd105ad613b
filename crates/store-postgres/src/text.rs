//! Texts that PostgreSQL can store: it has no NUL in them.

use std::borrow::Cow;

/// The text with U+FFFD in the place of every NUL.
pub(crate) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// The same for a list of texts.
pub(crate) fn all_storable(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| storable(text).into_owned()).collect()
}
