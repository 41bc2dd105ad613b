//! The id of a thread, parsed: a UUID in any spelling, shown lower-case and hyphenated.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// A thread's id. Parsing accepts every spelling of a UUID; the error is the UUID parser's own text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(Uuid);

impl ThreadId {
    /// A new id that sorts after the ones made before it.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// The bits of the id.
    pub fn as_uuid(&self) -> &Uuid {
        &self.0
    }
}

impl From<Uuid> for ThreadId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl From<ThreadId> for loomd_protocol::ThreadId {
    fn from(id: ThreadId) -> Self {
        Self(id.to_string())
    }
}

impl FromStr for ThreadId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        Uuid::parse_str(text).map(Self)
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ThreadId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ThreadId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_the_same_id() {
        let id: ThreadId = "01a1ddf1-cd57-76b3-a003-bb9a4aeb2ad2".parse().unwrap();
        for spelling in [
            "01A1DDF1-CD57-76B3-A003-BB9A4AEB2AD2",
            "01a1ddf1cd5776b3a003bb9a4aeb2ad2",
            "urn:uuid:01a1ddf1-cd57-76b3-a003-bb9a4aeb2ad2",
            "{01a1ddf1-cd57-76b3-a003-bb9a4aeb2ad2}",
        ] {
            assert_eq!(spelling.parse::<ThreadId>().unwrap(), id, "{spelling}");
        }
        assert_eq!(id.to_string(), "01a1ddf1-cd57-76b3-a003-bb9a4aeb2ad2");
    }

    #[test]
    fn a_wrong_id_is_explained() {
        for (given, words) in [
            ("nope", "invalid character"),
            ("", "invalid length"),
            ("01a1ddf1-cd57-76b3-a003-bb9a4aeb2ad", "invalid group length"),
        ] {
            let error = given.parse::<ThreadId>().unwrap_err().to_string();
            assert!(error.starts_with(words), "{error}");
        }
    }
}
