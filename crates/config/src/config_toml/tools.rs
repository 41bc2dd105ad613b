//! `[tools]`: settings of built-in tools.

use std::fmt;

use loomd_protocol::WebSearchToolConfig;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tools {
    /// Settings of searches by the provider.
    #[serde(deserialize_with = "table_or_switch")]
    pub web_search: Option<WebSearchToolConfig>,
    /// Accepted for other programs that share the file; no effect.
    pub view_image: Option<bool>,
}

/// Accepts the deprecated `web_search = true`, which has no effect: `web_search` at the top level selects the mode.
fn table_or_switch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<WebSearchToolConfig>, D::Error> {
    struct TableOrSwitch;

    impl<'de> Visitor<'de> for TableOrSwitch {
        type Value = Option<WebSearchToolConfig>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table or a boolean")
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            WebSearchToolConfig::deserialize(MapAccessDeserializer::new(map)).map(Some)
        }
    }

    deserializer.deserialize_any(TableOrSwitch)
}
