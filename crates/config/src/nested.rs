//! Configuration below the root of a trusted project. A command that works further up may write there, because
//! sandboxes protect `.codex` in the folders that they know, not at any depth. Such a file may therefore set how the
//! model works, but not permissions, servers or programs.

use std::path::Path;

use toml::Table;

/// The keys that are used from a file that a command may have written: none of them extends permissions, starts a
/// program, names a server or reads a file.
const PREFERENCES: &[&str] = &[
    "compact_prompt",
    "developer_instructions",
    "hide_agent_reasoning",
    "model",
    "model_auto_compact_token_limit",
    "model_context_window",
    "model_reasoning_effort",
    "model_reasoning_summary",
    "model_supports_reasoning_summaries",
    "model_verbosity",
    "personality",
    "plan_mode_reasoning_effort",
    "project_doc_max_bytes",
    "review_model",
    "service_tier",
    "show_raw_agent_reasoning",
    "tool_output_token_limit",
];

/// Leaves the preferences in `table` and returns the rest.
pub(crate) fn take_all_but_preferences(table: &mut Table) -> Table {
    let (preferences, rest) =
        std::mem::take(table).into_iter().partition(|(key, _)| PREFERENCES.contains(&key.as_str()));
    *table = preferences;
    rest
}

/// Whether a configuration folder contains rules or hooks.
pub(crate) fn has_rules_or_hooks(dot_codex: &Path) -> bool {
    ["rules", "hooks.json"].iter().any(|name| dot_codex.join(name).exists())
}

pub(crate) fn disabled_reason(folder: &Path, home: &Path) -> String {
    let (folder, file) = (folder.display(), home.join("config.toml"));
    format!(
        "Below the root of a trusted project only preferences about the model are used. To load everything, add \
         {folder} as a trusted project in {}.",
        file.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConfigToml;

    #[test]
    fn every_preference_is_a_key_of_the_configuration() {
        let known = serde_json::to_value(ConfigToml::default()).unwrap();
        for key in PREFERENCES {
            assert!(known.get(key).is_some(), "{key}");
        }
    }
}
