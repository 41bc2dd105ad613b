//! `Secret`: a string that must not end up in a log. It has no `Display` and no `Serialize`, and `Debug`
//! shows nothing of it.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// A token, or a header that may carry one.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// `serialize_with` for the view of `config/read`: a client that edits the user's file through the server
/// must see what stands in it.
pub(crate) fn as_written<S: Serializer>(value: &impl AsWritten, serializer: S) -> Result<S::Ok, S::Error> {
    value.written().serialize(serializer)
}

pub(crate) trait AsWritten {
    fn written(&self) -> impl Serialize;
}

impl AsWritten for Option<Secret> {
    fn written(&self) -> impl Serialize {
        self.as_ref().map(Secret::reveal)
    }
}

impl AsWritten for Option<BTreeMap<String, Secret>> {
    fn written(&self) -> impl Serialize {
        self.as_ref().map(AsWritten::written)
    }
}

impl AsWritten for BTreeMap<String, Secret> {
    fn written(&self) -> impl Serialize {
        self.iter().map(|(key, value)| (key, value.reveal())).collect::<BTreeMap<_, _>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", Some(Secret::from("sk-1".to_owned()))), "Some(Secret(..))");
    }
}
