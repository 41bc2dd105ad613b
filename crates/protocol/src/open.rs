//! Open enums: strings with known values. An unknown value is preserved, because models, service tiers and plans appear
//! faster than releases do.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! open_enum {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $wire:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($variant,)*
            /// A value that this release does not know.
            Other(String),
        }

        impl $name {
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $wire,)*
                    Self::Other(value) => value,
                }
            }
        }

        impl From<String> for $name {
            fn from(value: String) -> Self {
                match &*value {
                    $($wire => Self::$variant,)*
                    _ => Self::Other(value),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }

        /// The schema lists the known values.
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "enum": [$($wire),*] })
            }
        }
    };
}

open_enum! {
    /// How much a model reasons before it answers.
    ReasoningEffort {
        None = "none",
        Minimal = "minimal",
        Low = "low",
        Medium = "medium",
        High = "high",
        Xhigh = "xhigh",
    }
}

open_enum! {
    /// The speed class of model calls.
    ServiceTier {
        Fast = "fast",
        Flex = "flex",
    }
}

open_enum! {
    /// The account's subscription.
    PlanType {
        Free = "free",
        Go = "go",
        Plus = "plus",
        Pro = "pro",
        Team = "team",
        SelfServeBusinessUsageBased = "self_serve_business_usage_based",
        Business = "business",
        EnterpriseCbpUsageBased = "enterprise_cbp_usage_based",
        Enterprise = "enterprise",
        Edu = "edu",
        Unknown = "unknown",
    }
}
