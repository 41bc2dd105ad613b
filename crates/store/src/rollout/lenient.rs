//! Reading optional parts so that an unknown value of one costs that value, not the whole record.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// `None` when the value is null or of a shape that this release does not know.
pub(super) fn or_none<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

/// The default when the value is null or of a shape that this release does not know.
pub(super) fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: DeserializeOwned + Default,
    D: Deserializer<'de>,
{
    or_none(deserializer).map(Option::unwrap_or_default)
}
