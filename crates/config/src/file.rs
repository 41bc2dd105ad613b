//! One configuration file: its text, its table, and locations of errors in it.

use std::io;

use loomd_protocol::AbsolutePathBuf;
use toml::Table;
use toml::de::DeTable;

use crate::paths::PathBase;
use crate::span;
use crate::{ConfigError, ConfigToml, SourceLocation};

/// The largest configuration file that is read.
pub(crate) const MAX_BYTES: u64 = 16 << 20;

/// A file as read; a missing one is empty.
#[derive(Clone)]
pub(crate) struct SourceFile {
    pub path: AbsolutePathBuf,
    text: String,
    exists: bool,
}

impl SourceFile {
    pub fn empty(path: AbsolutePathBuf) -> Self {
        Self { path, text: String::new(), exists: false }
    }

    pub fn read(path: AbsolutePathBuf) -> Result<Self, ConfigError> {
        let bytes = match loomd_regular::read(&path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::empty(path)),
            Err(error) => return Err(ConfigError::Unreadable { path, error }),
        };
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { path, text, exists: true }),
            Err(error) => {
                let end = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(error.as_bytes());
                Err(ConfigError::Syntax {
                    message: "invalid UTF-8".into(),
                    location: SourceLocation::new(path, &text, end..end),
                })
            }
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text, or `None` if the file was missing.
    pub fn as_read(&self) -> Option<&str> {
        self.exists.then_some(self.text.as_str())
    }

    /// A file that is to be written with this text.
    pub fn with_text(path: AbsolutePathBuf, text: String) -> Self {
        Self { path, text, exists: true }
    }

    /// Parses the table.
    pub fn table(&self) -> Result<Table, ConfigError> {
        self.text.parse().map_err(|error: toml::de::Error| ConfigError::Syntax {
            message: error.message().into(),
            location: SourceLocation::new(self.path.clone(), &self.text, error.span().unwrap_or(0..0)),
        })
    }

    /// Returns the location of the value that `mistake` is about, if this file by itself has the same error.
    pub fn location_of(&self, mistake: &toml::de::Error, base: &PathBase<'_>) -> Option<SourceLocation> {
        let mut table = self.table().ok()?;
        base.resolve(&mut table);
        let mistake = mistake.to_string();
        let is_mistaken =
            |table: Table| Result::<ConfigToml, _>::err(table.try_into()).is_some_and(|own| own.to_string() == mistake);
        if !is_mistaken(table.clone()) {
            return None;
        }
        let spans = DeTable::parse(&self.text).ok()?;
        let span = span::of_mistake(&mistake, &spans, &table, &is_mistaken);
        Some(SourceLocation::new(self.path.clone(), &self.text, span))
    }
}
