//! The level of a connection, and the version that the server reports.
//!
//! Everyone is told the newest level, because clients refuse servers that are too old and none refuses one that is too
//! new. Where the levels conflict, a connection is served as 0.118 unless it shows that it is newer. A configured
//! version fixes both.

use std::env;

use loomd_config::LoadedConfig;
use loomd_protocol::{ClientInfo, InitializeCapabilities, InitializeParams, Level};

/// The version that is reported, and the level if it is the same for all connections.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Levels {
    pub version: String,
    fixed: Option<Level>,
}

impl Levels {
    /// Reads `LOOMD_PROTOCOL_VERSION`, else `protocol_version` of `[loomd]` in the configuration.
    pub fn new(config: &LoadedConfig) -> Self {
        let given = env::var("LOOMD_PROTOCOL_VERSION").ok().filter(|version| !version.is_empty());
        let configured = || config.config.loomd.as_ref()?.protocol_version.clone();
        Self::of(given.or_else(configured))
    }

    pub fn of(given: Option<String>) -> Self {
        let known = |version: &String| Level::of_version(version).filter(|_| version.is_ascii());
        match given.map(|version| (known(&version), version)) {
            Some((Some(level), version)) => Self { version, fixed: Some(level) },
            Some((None, version)) => {
                tracing::error!(?version, "ignoring an invalid protocol version");
                Self { version: Level::LATEST.version().into(), fixed: None }
            }
            None => Self { version: Level::LATEST.version().into(), fixed: None },
        }
    }

    /// Returns the level of a connection by its handshake.
    pub fn of_connection(&self, params: &InitializeParams) -> Level {
        self.fixed.unwrap_or_else(|| shown_by(params))
    }
}

/// Returns the version that this server reports.
pub fn reported_version(config: &LoadedConfig) -> String {
    Levels::new(config).version
}

/// The level that a handshake shows: asked for, known of the client, or of a capability that only newer clients have.
fn shown_by(params: &InitializeParams) -> Level {
    let none = InitializeCapabilities::default();
    let capabilities = params.capabilities.as_ref().unwrap_or(&none);
    let asked = capabilities.protocol_version.as_deref().and_then(Level::of_version);
    asked.or_else(|| of_client(&params.client_info)).unwrap_or(if has_newer_capability(capabilities) {
        Level::V0_166
    } else {
        Level::V0_118
    })
}

fn has_newer_capability(capabilities: &InitializeCapabilities) -> bool {
    capabilities.request_attestation
        || capabilities.extensions.is_some()
        || capabilities.mcp_server_openai_form_elicitation.is_some()
        || capabilities.explicit_gateway_oauth.is_some()
}

/// Clients whose version is the release of the protocol that they were built for.
const VERSIONED: &[&str] = &["codex-tui", "codex_cli_rs", "codex_exec", "codex_python_sdk", "codex_vscode"];

/// Clients that speak the newer level from some version of their own on.
const NEWER_SINCE: &[(&str, [u32; 3])] =
    &[("codex-acp", [2, 0, 0]), ("openclaw", [0, 0, 0]), ("happy-codex", [1, 0, 0]), ("happy", [1, 0, 0])];

fn of_client(client: &ClientInfo) -> Option<Level> {
    if VERSIONED.contains(&client.name.as_str()) {
        return Level::of_version(&client.version);
    }
    let (_, since) = NEWER_SINCE.iter().find(|(name, _)| *name == client.name)?;
    let (numbers, _) = client.version.split_once('-').unwrap_or((&client.version, ""));
    let numbers: Vec<u32> = numbers.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?;
    Some(if numbers.as_slice() >= since.as_slice() { Level::V0_166 } else { Level::V0_118 })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn level(levels: &Levels, name: &str, version: &str, capabilities: serde_json::Value) -> Level {
        let params = json!({ "clientInfo": { "name": name, "version": version }, "capabilities": capabilities });
        levels.of_connection(&serde_json::from_value(params).unwrap())
    }

    #[test]
    fn a_connection_is_served_as_0_118_unless_it_shows_that_it_is_newer() {
        let free = Levels::of(None);
        assert_eq!(free.version, "0.166.0");
        for (name, version, capabilities, expected) in [
            ("probe", "1.0.0", json!({}), Level::V0_118),
            ("probe", "1.0.0", json!(null), Level::V0_118),
            ("probe", "1.0.0", json!({ "protocolVersion": "0.153.0" }), Level::V0_166),
            ("codex-tui", "0.166.0", json!({}), Level::V0_166),
            ("codex-tui", "0.166.0", json!({ "protocolVersion": "0.118.0" }), Level::V0_118),
            ("codex-tui", "0.117.0", json!({}), Level::V0_118),
            ("probe", "1", json!({ "extensions": {} }), Level::V0_166),
            ("probe", "1", json!({ "requestAttestation": false }), Level::V0_118),
            ("probe", "1", json!({ "mcpServerOpenaiFormElicitation": false }), Level::V0_166),
            ("codex-acp", "2.6.0", json!({}), Level::V0_166),
            ("codex-acp", "what", json!({}), Level::V0_118),
        ] {
            assert_eq!(level(&free, name, version, capabilities.clone()), expected, "{name} {version} {capabilities}");
        }
    }

    #[test]
    fn a_configured_version_fixes_what_is_reported_and_the_level_of_every_connection() {
        let old = Levels::of(Some("0.118.0".into()));
        assert_eq!((old.version.as_str(), old.fixed), ("0.118.0", Some(Level::V0_118)));
        assert_eq!(level(&old, "codex-tui", "0.166.0", json!({ "extensions": {} })), Level::V0_118);
        let between = Levels::of(Some("0.153.0".into()));
        assert_eq!((between.version.as_str(), between.fixed), ("0.153.0", Some(Level::V0_166)));
        assert_eq!(Levels::of(Some("latest".into())), Levels::of(None));
    }
}
