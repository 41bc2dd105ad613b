//! Tables whose shape is another program's business: kept as they are.

use serde::{Deserialize, Serialize, Serializer};
use toml::Table;

use crate::json;

/// Any table.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Opaque(pub Table);

impl Serialize for Opaque {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json::from_table(&self.0).serialize(serializer)
    }
}
