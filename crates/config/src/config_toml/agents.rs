//! `[agents]`: limits of sub-agents, and the roles that are defined beside them.

use std::collections::BTreeMap;
use std::fmt;
use std::num::{NonZeroI32, NonZeroU64, NonZeroUsize};

use schemars::JsonSchema;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::AgentRole;

/// Limits and roles of sub-agents. Limits are never zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Agents {
    /// The most child agents that are open at a time. Default: 6.
    pub max_threads: Option<NonZeroUsize>,
    /// The greatest depth of an agent tree. Default: 1.
    pub max_depth: Option<NonZeroI32>,
    /// Accepted for other programs that share the file; no effect.
    pub job_max_runtime_seconds: Option<NonZeroU64>,
    /// All other tables, by the name of the role.
    #[serde(flatten)]
    pub roles: BTreeMap<String, AgentRole>,
}

/// Written by hand, because a derived `flatten` would lose the location of a wrong limit.
impl<'de> Deserialize<'de> for Agents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Agents;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("struct Agents")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Agents, A::Error> {
                let mut agents = Agents::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "max_threads" => agents.max_threads = Some(map.next_value()?),
                        "max_depth" => agents.max_depth = Some(map.next_value()?),
                        "job_max_runtime_seconds" => agents.job_max_runtime_seconds = Some(map.next_value()?),
                        _ => {
                            agents.roles.insert(key, map.next_value()?);
                        }
                    }
                }
                Ok(agents)
            }
        }

        deserializer.deserialize_map(Members)
    }
}
