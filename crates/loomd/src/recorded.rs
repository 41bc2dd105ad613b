//! The schemas that the program writes: recorded when a type changes, embedded compressed. Generating them from the
//! types would put the schema code of every type into the program, several megabytes of it.
//!
//! `cargo xtask schemas` records them; a test compares the record with the types.

use anyhow::{Context, Result};
use loomd_protocol::schema::Definitions;
use loomd_protocol::{JsonValue, Level};
use serde::{Deserialize, Serialize};

static ARCHIVE: &[u8] = include_bytes!("../schema/recorded.json.zst");

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    pub json_schema: Surfaces,
    pub typescript: Surfaces,
    /// The JSON Schema of `config.toml`.
    pub config_toml: JsonValue,
}

/// The definitions of both surfaces of both releases.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Surfaces {
    stable: Levels,
    experimental: Levels,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Levels {
    v0_118: Definitions,
    v0_166: Definitions,
}

impl Surfaces {
    pub fn surface(self, level: Level, experimental: bool) -> Definitions {
        let levels = if experimental { self.experimental } else { self.stable };
        match level {
            Level::V0_118 => levels.v0_118,
            Level::V0_166 => levels.v0_166,
        }
    }
}

impl Recorded {
    pub fn load() -> Result<Self> {
        decode()
    }

    /// The JSON Schema of `config.toml` alone, in less time than all of them.
    pub fn config_toml() -> Result<JsonValue> {
        #[derive(Deserialize)]
        struct Part {
            config_toml: JsonValue,
        }
        decode::<Part>().map(|part| part.config_toml)
    }
}

fn decode<T: serde::de::DeserializeOwned>() -> Result<T> {
    let json = zstd::decode_all(ARCHIVE).context("the embedded schemas cannot be decompressed")?;
    serde_json::from_slice(&json).context("the embedded schemas cannot be decoded")
}

#[cfg(test)]
mod tests {
    use loomd_protocol::schema::{Format, Surface, inventory};

    use super::*;

    const OLDER: &str = include_str!("../../protocol/inventory/0.118.0.txt");
    const NEWER: &str = include_str!("../../protocol/inventory/0.166.0.txt");

    fn collected() -> Recorded {
        let levels = |surface, format| {
            let v0_166 = Definitions::collect(surface, format);
            // Methods and types are experimental in one release and stable in the other.
            let [older, newer] = [OLDER, NEWER].map(|release| inventory::parse(release, Surface::Experimental));
            Levels { v0_118: v0_166.clone().of_release(&older, &newer), v0_166 }
        };
        let surfaces = |format| Surfaces {
            stable: levels(Surface::Stable, format),
            experimental: levels(Surface::Experimental, format),
        };
        Recorded {
            json_schema: surfaces(Format::JsonSchema),
            typescript: surfaces(Format::TypeScript),
            config_toml: loomd_config::schema(),
        }
    }

    /// Writes the record instead when `LOOMD_RECORD_SCHEMAS` is set.
    #[test]
    fn the_recorded_schemas_are_those_of_the_types() {
        let collected = collected();
        if std::env::var_os("LOOMD_RECORD_SCHEMAS").is_some() {
            let json = serde_json::to_vec(&collected).unwrap();
            let archive = zstd::encode_all(json.as_slice(), 19).unwrap();
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/schema/recorded.json.zst"), archive).unwrap();
            return;
        }
        let recorded = Recorded::load().unwrap();
        assert!(recorded == collected, "the types have changed: run `cargo xtask schemas`");
    }
}
