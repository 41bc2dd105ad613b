//! How the server and its clients present themselves: the user agent and the originator.

use std::env;
use std::fs;

use loomd_config::LoadedConfig;
use loomd_protocol::{ClientInfo, RpcError};

use crate::level::Levels;

/// The part of the user agent that is the same for all clients, and what overrides it.
pub(crate) struct Identity {
    /// `<protocol version> (<OS> <OS version>; <arch>) <terminal>`
    platform: String,
    pub levels: Levels,
    /// Set by products that embed the server and speak under one name.
    originator: Option<String>,
}

impl Identity {
    pub fn new(config: &LoadedConfig) -> Self {
        let levels = Levels::new(config);
        let originator = env::var("CODEX_INTERNAL_ORIGINATOR_OVERRIDE").ok().filter(|name| is_header_value(name));
        Self {
            platform: format!("{} ({}; {}) {}", levels.version, operating_system(), env::consts::ARCH, terminal()),
            levels,
            originator,
        }
    }

    /// Returns the user agent of a client, for the answer to `initialize` and for its model calls.
    pub fn user_agent(&self, client: &ClientInfo) -> String {
        let originator = self.originator.as_ref().unwrap_or(&client.name);
        let agent = format!("{originator}/{} ({}; {})", self.platform, client.name, client.version);
        if is_header_value(&agent) { agent } else { printable(&agent) }
    }
}

impl Identity {
    /// Returns the name that a client's model calls carry.
    pub fn originator(&self, client: &ClientInfo) -> String {
        self.originator.clone().unwrap_or_else(|| client.name.clone())
    }
}

/// A client's name becomes an HTTP header, so it must fit into one.
pub(crate) fn check_name(name: &str) -> Result<(), RpcError> {
    if is_header_value(name) {
        return Ok(());
    }
    Err(RpcError::invalid_request(format!("Invalid clientInfo.name: '{name}'. Must be a valid HTTP header value.")))
}

/// Control characters other than tab do not go into a header; text beyond ASCII does.
fn is_header_value(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if (' '..='~').contains(&c) { c } else { '_' }).collect()
}

fn operating_system() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let value = |key: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(line.trim_matches('"').to_owned())
    };
    match (value("NAME"), value("VERSION_ID")) {
        (Some(name), version) => {
            let name = name.trim_end_matches(" GNU/Linux").trim_end_matches(" Linux");
            format!("{name} {}", version.map_or("unknown".into(), |version| three_numbers(&version)))
        }
        _ => format!("{} unknown", env::consts::OS),
    }
}

/// `12` as `12.0.0`, `22.04` as `22.4.0`; anything else as it is.
fn three_numbers(version: &str) -> String {
    let numbers: Option<Vec<u64>> = version.split('.').map(|number| number.parse().ok()).collect();
    match numbers.as_deref() {
        Some([major]) => format!("{major}.0.0"),
        Some([major, minor]) => format!("{major}.{minor}.0"),
        _ => version.to_owned(),
    }
}

fn terminal() -> String {
    let set = |key: &str| env::var(key).ok().filter(|value| !value.is_empty());
    if let Some(program) = set("TERM_PROGRAM") {
        return match set("TERM_PROGRAM_VERSION") {
            Some(version) => format!("{program}/{version}"),
            None => program,
        };
    }
    let hints = [
        ("WEZTERM_VERSION", "WezTerm"),
        ("KITTY_WINDOW_ID", "kitty"),
        ("ALACRITTY_SOCKET", "Alacritty"),
        ("KONSOLE_VERSION", "Konsole"),
        ("VTE_VERSION", "VTE"),
        ("WT_SESSION", "WindowsTerminal"),
    ];
    let hint = hints.iter().find(|(key, _)| set(key).is_some()).map(|(_, name)| (*name).to_owned());
    hint.or_else(|| set("TERM")).unwrap_or_else(|| "unknown".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str, version: &str) -> String {
        let platform = "0.118.0 (OS 1; cpu) term".into();
        let identity = Identity { platform, levels: Levels::of(None), originator: None };
        identity.user_agent(&ClientInfo { name: name.into(), title: None, version: version.into() })
    }

    #[test]
    fn the_user_agent_begins_and_ends_with_the_client() {
        assert_eq!(agent("probe", "9.9"), "probe/0.118.0 (OS 1; cpu) term (probe; 9.9)");
        assert_eq!(agent("café", "1"), "café/0.118.0 (OS 1; cpu) term (café; 1)");
        assert_eq!(agent("café", "1\n2"), "caf_/0.118.0 (OS 1; cpu) term (caf_; 1_2)");
    }

    #[test]
    fn the_version_of_the_system_has_three_numbers() {
        assert_eq!(["12", "22.04", "1.2.3", "rolling"].map(three_numbers), ["12.0.0", "22.4.0", "1.2.3", "rolling"]);
    }

    #[test]
    fn a_client_name_with_control_characters_is_refused() {
        for name in ["", "a b", "a\tb", "äöü"] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
        for name in ["a\nb", "a\rb", "\u{7f}", "\0"] {
            let error = check_name(name).unwrap_err();
            assert_eq!(error.message, format!("Invalid clientInfo.name: '{name}'. Must be a valid HTTP header value."));
        }
    }
}
