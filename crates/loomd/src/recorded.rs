//! The schemas that the program writes: recorded when a type changes, embedded compressed. Generating them from the
//! types would put the schema code of every type into the program, several megabytes of it.
//!
//! `cargo xtask schemas` records them; a test compares the record with the types.

use anyhow::{Context, Result};
use loomd_protocol::JsonValue;
use loomd_protocol::schema::Definitions;
use serde::{Deserialize, Serialize};

static ARCHIVE: &[u8] = include_bytes!("../schema/recorded.json.zst");

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    pub json_schema: Surfaces,
    pub typescript: Surfaces,
    /// The JSON Schema of `config.toml`.
    pub config_toml: JsonValue,
}

/// The definitions of both surfaces.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Surfaces {
    stable: Definitions,
    experimental: Definitions,
}

impl Surfaces {
    pub fn surface(self, experimental: bool) -> Definitions {
        if experimental { self.experimental } else { self.stable }
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
    use loomd_protocol::schema::{Format, Surface};

    use super::*;

    fn collected() -> Recorded {
        let surfaces = |format| Surfaces {
            stable: Definitions::collect(Surface::Stable, format),
            experimental: Definitions::collect(Surface::Experimental, format),
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
