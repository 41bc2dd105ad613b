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

/// An amount of money: a number that is finite and not negative.
pub fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let amount = Option::<f64>::deserialize(deserializer)?;
    match amount {
        Some(amount) if !amount.is_finite() || amount < 0.0 => {
            Err(serde::de::Error::invalid_value(serde::de::Unexpected::Float(amount), &"an amount of at least 0"))
        }
        amount => Ok(amount),
    }
}

/// A field that must be present, but may be null.
pub(crate) fn nullable<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::<T>::deserialize(deserializer)
}
