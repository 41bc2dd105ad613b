//! `AbsolutePathBuf`: a path that does not depend on a working directory.

use std::borrow::Cow;
use std::ops::Deref;
use std::path::{Component, Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// An absolute path without `.`, `..`, repeated or trailing slashes. Normalised lexically: symlinks are not resolved
/// and the path need not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct AbsolutePathBuf(PathBuf);

impl AbsolutePathBuf {
    /// Returns `None` for a relative path.
    pub fn new(path: impl AsRef<Path>) -> Option<Self> {
        let path = path.as_ref();
        path.is_absolute().then(|| Self(normalise(path)))
    }

    /// Resolves a relative path against `base`.
    pub fn resolve(base: &AbsolutePathBuf, path: impl AsRef<Path>) -> Self {
        Self(normalise(&base.0.join(path)))
    }

    pub fn into_path_buf(self) -> PathBuf {
        self.0
    }
}

fn normalise(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

impl Deref for AbsolutePathBuf {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for AbsolutePathBuf {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl<'de> Deserialize<'de> for AbsolutePathBuf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The error text is the one that clients of this protocol know.
        Self::new(PathBuf::deserialize(deserializer)?)
            .ok_or_else(|| D::Error::custom("AbsolutePathBuf deserialized without a base path"))
    }
}

impl JsonSchema for AbsolutePathBuf {
    fn schema_name() -> Cow<'static, str> {
        "AbsolutePathBuf".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised_lexically() {
        for (given, clean) in [
            ("/w/./x/../a.txt", "/w/a.txt"),
            ("/w/a.txt/", "/w/a.txt"),
            ("//w///a", "/w/a"),
            ("/../..", "/"),
            ("/", "/"),
        ] {
            assert_eq!(AbsolutePathBuf::new(given).unwrap().0, Path::new(clean), "{given}");
        }
    }

    #[test]
    fn a_relative_path_is_refused_with_the_known_text() {
        for given in ["\"rel.txt\"", "\"\"", "\"~/x\"", "\"./x\""] {
            let error = serde_json::from_str::<AbsolutePathBuf>(given).unwrap_err().to_string();
            assert!(error.starts_with("AbsolutePathBuf deserialized without a base path"), "{error}");
        }
        let error = serde_json::from_str::<AbsolutePathBuf>("5").unwrap_err().to_string();
        assert!(error.starts_with("invalid type: integer `5`, expected path string"), "{error}");
    }
}
