//! The program that started a thread, as the file spells it. The wire spells it differently.

use loomd_protocol::{SessionSource, SubAgentSource};
use serde::{Deserialize, Deserializer, Serialize};

/// The program that started a thread. A missing value reads as `Vscode`, an unknown one as `Unknown`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Cli,
    #[default]
    Vscode,
    Exec,
    /// `appServer` on the wire.
    Mcp,
    Custom(String),
    SubAgent(SubAgentSource),
    Unknown,
}

impl Source {
    /// The wire's spelling.
    pub fn to_wire(&self) -> SessionSource {
        match self {
            Self::Cli => SessionSource::Cli,
            Self::Vscode => SessionSource::Vscode,
            Self::Exec => SessionSource::Exec,
            Self::Mcp => SessionSource::AppServer,
            Self::Custom(name) => SessionSource::Custom(name.clone()),
            Self::SubAgent(source) => SessionSource::SubAgent(source.clone()),
            Self::Unknown => SessionSource::Unknown,
        }
    }

    /// From the wire's spelling.
    pub fn from_wire(source: SessionSource) -> Self {
        match source {
            SessionSource::Cli => Self::Cli,
            SessionSource::Vscode => Self::Vscode,
            SessionSource::Exec => Self::Exec,
            SessionSource::AppServer => Self::Mcp,
            SessionSource::Custom(name) => Self::Custom(name),
            SessionSource::SubAgent(source) => Self::SubAgent(source),
            SessionSource::Unknown => Self::Unknown,
        }
    }
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Named {
            Custom(String),
            SubAgent(SubAgentSource),
        }
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(match value.as_str() {
            Some("cli") => Self::Cli,
            Some("vscode") => Self::Vscode,
            Some("exec") => Self::Exec,
            Some("mcp") => Self::Mcp,
            Some(_) => Self::Unknown,
            None if value.is_null() => Self::default(),
            None => match serde_json::from_value(value) {
                Ok(Named::Custom(name)) => Self::Custom(name),
                Ok(Named::SubAgent(source)) => Self::SubAgent(source),
                Err(_) => Self::Unknown,
            },
        })
    }
}
