//! Small helpers for serde attributes.

use serde::{Deserialize, Deserializer};

pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

pub(crate) fn default_true() -> bool {
    true
}

/// Distinguishes `null` (`Some(None)`) from absent (`None`, by `#[serde(default)]`).
pub(crate) fn double_option<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::<T>::deserialize(deserializer).map(Some)
}

/// A field that must be present, but may be null.
pub(crate) fn nullable<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::<T>::deserialize(deserializer)
}
