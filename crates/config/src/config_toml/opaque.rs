//! Tables of other programs. They are kept as written, whatever they contain; `config/read` shows their known keys,
//! with defaults.

use loomd_protocol::{JsonObject, JsonValue};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use std::borrow::Cow;
use toml::Table;

use crate::json;

/// The description of keys that other programs use.
const NO_EFFECT: &str = "Accepted for other programs that share the file; no effect.";

macro_rules! opaque_tables {
    ($($(#[$doc:meta])* $name:ident { $($key:literal: $default:tt $(, $description:literal)?;)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Table);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                with_defaults(&self.0, [$(($key, json!($default)),)*]).serialize(serializer)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let known = [$(($key, [$($description,)? NO_EFFECT][0])),*];
                let properties: JsonObject =
                    known.iter().map(|(key, text)| ((*key).to_owned(), json!({ "description": text }))).collect();
                json_schema!({ "type": "object", "properties": properties, "additionalProperties": true })
            }
        }
    )*};
}

opaque_tables! {
    /// `[tui]`
    Tui {
        "alternate_screen": "auto";
        "animations": true;
        "model_availability_nux": {};
        "notification_method": "auto";
        "notifications": true;
        "show_tooltips": true;
        "status_line": null;
        "terminal_title": null;
        "theme": null;
    }
    /// `[notice]`: notices that the user has dismissed.
    Notice {
        "hide_full_access_warning": null;
        "hide_world_writable_warning": null;
        "hide_rate_limit_model_nudge": null;
        "hide_gpt5_1_migration_prompt": null;
        "hide_gpt-5.1-codex-max_migration_prompt": null;
        "model_migrations": {};
    }
    /// `[audio]`
    Audio {
        "microphone": null;
        "speaker": null;
    }
    /// `[ghost_snapshot]`
    GhostSnapshot {
        "disable_warnings": null;
        "ignore_large_untracked_dirs": null;
        "ignore_large_untracked_files": null;
    }
    /// `[tool_suggest]`
    ToolSuggest {
        "discoverables": [], "Apps that the model may suggest: tables with `type = \"connector\"` and their `id`.";
    }
    /// `[windows]`
    Windows {
        "sandbox": null;
        "sandbox_private_desktop": null;
    }
    /// `[agents.<role>]`
    AgentRole {
        "description": null;
        "config_file": null;
        "nickname_candidates": null;
    }
}

fn with_defaults<const N: usize>(table: &Table, known: [(&str, JsonValue); N]) -> JsonObject {
    let mut written = json::from_table(table);
    known.into_iter().map(|(key, default)| (key.to_owned(), written.shift_remove(key).unwrap_or(default))).collect()
}
