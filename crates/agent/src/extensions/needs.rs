//! What skills need beside their instructions: MCP servers and environment variables.

use std::collections::{BTreeMap, HashSet};

use loomd_config::config_toml::{McpServer, McpTransport};
use loomd_mcp::ServerSet;
use loomd_protocol::{JsonValue, Secret, SkillToolDependency};
use parking_lot::Mutex;
use serde_json::json;

/// What the user was asked for on behalf of skills of a thread, and what was given.
#[derive(Default)]
pub(crate) struct SkillNeeds(Mutex<State>);

#[derive(Default)]
struct State {
    /// Servers and variables that the user was asked for.
    asked: HashSet<String>,
    variables: BTreeMap<String, Secret>,
}

impl SkillNeeds {
    /// Whether the user has not been asked for this before; from now on they have.
    pub fn ask_for(&self, name: &str) -> bool {
        self.0.lock().asked.insert(name.to_owned())
    }

    pub fn has_variable(&self, name: &str) -> bool {
        self.0.lock().variables.contains_key(name)
    }

    pub fn set_variable(&self, name: String, value: Secret) {
        self.0.lock().variables.insert(name, value);
    }

    /// The variables that the user gave, for the thread's commands.
    pub fn variables(&self) -> Vec<(String, String)> {
        let state = self.0.lock();
        state.variables.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned())).collect()
    }
}

/// An MCP server that a skill needs and the thread does not have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NeededServer {
    pub name: String,
    /// Its table in `config.toml`.
    pub table: JsonValue,
    pub config: McpServer,
}

/// Returns the servers among the dependencies that are not in `servers`, each once. A server is known by its program or
/// its URL; one with neither cannot be installed.
pub(crate) fn missing_servers<'a>(
    dependencies: impl Iterator<Item = &'a SkillToolDependency>,
    servers: &ServerSet,
) -> Vec<NeededServer> {
    let mut missing: Vec<NeededServer> = Vec::new();
    for needed in dependencies.filter(|needed| needed.r#type.eq_ignore_ascii_case("mcp")) {
        let table = match (&needed.url, &needed.command) {
            (Some(url), _) => json!({ "url": url }),
            (None, Some(command)) => json!({ "command": command }),
            (None, None) => continue,
        };
        let Ok(config) = serde_json::from_value::<McpServer>(table.clone()) else { continue };
        let is_there = servers.iter().any(|(_, entry)| is_same(&entry.config.transport, &config.transport))
            || missing.iter().any(|other| is_same(&other.config.transport, &config.transport));
        let is_taken = servers.get(&needed.value).is_some() || missing.iter().any(|other| other.name == needed.value);
        if !is_there && !is_taken && loomd_mcp::is_valid_name(&needed.value) {
            missing.push(NeededServer { name: needed.value.clone(), table, config });
        }
    }
    missing
}

fn is_same(one: &McpTransport, other: &McpTransport) -> bool {
    match (one, other) {
        (McpTransport::Stdio { command: one, .. }, McpTransport::Stdio { command: other, .. }) => one == other,
        (McpTransport::StreamableHttp { url: one, .. }, McpTransport::StreamableHttp { url: other, .. }) => {
            one == other
        }
        _ => false,
    }
}

/// Returns the names of variables among the dependencies, with their descriptions, each once.
pub(crate) fn variables<'a>(
    dependencies: impl Iterator<Item = &'a SkillToolDependency>,
) -> BTreeMap<&'a str, Option<&'a str>> {
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let variables = dependencies.filter(|needed| needed.r#type.eq_ignore_ascii_case("env_var"));
    variables
        .filter(|needed| is_name(&needed.value))
        .map(|needed| (needed.value.as_str(), needed.description.as_deref()))
        .collect()
}

/// Whether a client can be asked to install servers: those that know the question.
pub(crate) fn installs_servers(client: &str) -> bool {
    ["codex_cli_rs", "codex-tui", "codex_vscode"].contains(&client) || client.starts_with("Codex ")
}

#[cfg(test)]
mod tests {
    use loomd_mcp::Origin;

    use super::*;

    fn need(kind: &str, value: &str, command: Option<&str>, url: Option<&str>) -> SkillToolDependency {
        SkillToolDependency {
            r#type: kind.into(),
            value: value.into(),
            description: None,
            transport: None,
            command: command.map(Into::into),
            url: url.map(Into::into),
        }
    }

    fn server(table: serde_json::Value) -> McpServer {
        serde_json::from_value(table).unwrap()
    }

    #[test]
    fn servers_are_missing_unless_their_program_or_url_is_configured() {
        let mut set = ServerSet::default();
        set.add("known", server(json!({ "command": "here", "args": ["x"] })), Origin::Configuration);
        let needs = [
            need("mcp", "other-name", Some("here"), None),
            need("mcp", "web", None, Some("https://x.test")),
            need("MCP", "again", None, Some("https://x.test")),
            need("mcp", "known", Some("another"), None),
            need("mcp", "nowhere", None, None),
            need("mcp", "bad name", Some("y"), None),
            need("env_var", "tool", Some("z"), None),
        ];
        let missing = missing_servers(needs.iter(), &set);
        let table = json!({ "url": "https://x.test" });
        assert_eq!(missing, [NeededServer { name: "web".into(), config: server(table.clone()), table }]);
    }

    #[test]
    fn variables_have_names_of_variables() {
        let needs = ["TOKEN", "TOKEN", "A B", "1X", "", "_y"].map(|name| need("env_var", name, None, None));
        assert_eq!(variables(needs.iter()).into_keys().collect::<Vec<_>>(), ["TOKEN", "_y"]);
    }

    #[test]
    fn only_clients_that_know_the_question_are_asked() {
        for (client, asked) in [("codex-tui", true), ("Codex Desktop", true), ("Codex", false), ("conformance", false)]
        {
            assert_eq!(installs_servers(client), asked, "{client}");
        }
    }

    #[test]
    fn the_user_is_asked_once_for_each_thing() {
        let needs = SkillNeeds::default();
        assert!(needs.ask_for("a") && !needs.ask_for("a") && needs.ask_for("b"));
        needs.set_variable("A".into(), "1".to_owned().into());
        assert!(needs.has_variable("A") && !needs.has_variable("B"));
        assert_eq!(needs.variables(), [("A".into(), "1".into())]);
    }
}
