//! The macros that turn the rows of `methods.rs` into code.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::{AskForApproval, JsonValue, RpcError};

/// A method as a type: its name, params and result.
pub trait Call {
    const METHOD: &'static str;
    type Params: Serialize + DeserializeOwned;
    type Result: Serialize + DeserializeOwned;
}

/// A server request as a type.
pub trait ServerCall: Call {
    /// Returns the params without their experimental fields; `None` if none of these is set.
    fn stable_params(params: &Self::Params) -> Option<Self::Params>;
}

/// One row of a table, for schema export and documentation.
pub struct MethodInfo {
    pub method: &'static str,
    pub stability: Stability,
    /// Fields of the params that the stable schemas omit.
    pub hidden_fields: &'static [&'static str],
    pub params: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
    /// `None` for notifications.
    pub result: Option<fn(&mut schemars::SchemaGenerator) -> schemars::Schema>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    Stable,
    /// Requires the `experimentalApi` capability.
    Experimental,
    /// Served, but in no JSON Schema.
    Unlisted,
}

/// The params of a method without params: absent, null or an empty object.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NoParams;

impl Serialize for NoParams {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<'de> Deserialize<'de> for NoParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match JsonValue::deserialize(deserializer)? {
            JsonValue::Null => Ok(Self),
            JsonValue::Object(fields) if fields.is_empty() => Ok(Self),
            other => <()>::deserialize(other).map(|()| Self).map_err(serde::de::Error::custom),
        }
    }
}

impl schemars::JsonSchema for NoParams {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NoParams".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "null" })
    }
}

/// The params of a method without params here, but with optional ones in newer versions of the protocol: absent, null
/// or an object, whose fields are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IgnoredParams;

impl Serialize for IgnoredParams {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        NoParams.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for IgnoredParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match JsonValue::deserialize(deserializer)? {
            JsonValue::Object(_) => Ok(Self),
            other => NoParams::deserialize(other).map(|_| Self).map_err(serde::de::Error::custom),
        }
    }
}

impl schemars::JsonSchema for IgnoredParams {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IgnoredParams".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        NoParams::json_schema(generator)
    }
}

/// Why a method or its params could not be decoded. `Display` is the message for the peer.
#[derive(Debug, PartialEq)]
pub struct DecodeError(String);

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DecodeError {}

impl From<DecodeError> for RpcError {
    fn from(error: DecodeError) -> Self {
        Self::invalid_request(format!("Invalid request: {error}"))
    }
}

impl DecodeError {
    pub(crate) fn unknown_method(method: &str, known: &[&str]) -> Self {
        let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        Self(format!("unknown variant `{method}`, expected one of {}", known.join(", ")))
    }
}

/// Decodes params. Missing params count as `{}` if every field is optional.
pub(crate) fn decode_params<P: DeserializeOwned>(params: Option<&RawValue>) -> Result<P, DecodeError> {
    let Some(params) = params else {
        return serde_json::from_str("{}").map_err(|_| DecodeError("missing field `params`".into()));
    };
    if let Ok(params) = serde_json::from_str(params.get()) {
        return Ok(params);
    }
    // Of two equal members the last one counts. Decoding from the value itself would instantiate the decoder of
    // every type a second time.
    let params = last_members(params.get()).map_err(|error| DecodeError(without_position(&error)))?;
    serde_json::from_str(&params).map_err(|error| DecodeError(without_position(&error)))
}

/// The same JSON with every member once.
fn last_members(json: &str) -> serde_json::Result<String> {
    serde_json::to_string(&serde_json::from_str::<JsonValue>(json)?)
}

/// The text of an error without its position, which is one inside the params and means nothing to the sender.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).unwrap_or(&text).to_owned()
}

/// Whether an optional field is set for release 0.118.0: null and empty collections are not.
pub(crate) fn present(field: &Option<impl Present>) -> bool {
    field.as_ref().is_some_and(Present::present)
}

pub(crate) trait Present {
    fn present(&self) -> bool;
}

impl Present for String {
    fn present(&self) -> bool {
        true
    }
}

impl<T> Present for Vec<T> {
    fn present(&self) -> bool {
        !self.is_empty()
    }
}

pub(crate) fn is_granular(policy: &Option<AskForApproval>) -> bool {
    matches!(policy, Some(AskForApproval::Granular { .. }))
}

macro_rules! stability {
    (stable) => {
        Stability::Stable
    };
    (plain) => {
        Stability::Stable
    };
    (text) => {
        Stability::Stable
    };
    (experimental) => {
        Stability::Experimental
    };
    (unlisted) => {
        Stability::Unlisted
    };
    (newer) => {
        Stability::Stable
    };
    (gated) => {
        Stability::Stable
    };
}

/// The releases whose connections get a notification of this kind.
macro_rules! first_level {
    (newer) => {
        Level::V0_166
    };
    (gated) => {
        Level::V0_166
    };
    ($other:ident) => {
        Level::V0_118
    };
}

macro_rules! is_gated {
    (gated) => {
        true
    };
    ($other:ident) => {
        false
    };
}

/// The methods that are known and not served.
macro_rules! unbuilt {
    ($($stability:ident $method:literal;)*) => {
        /// Methods of the protocol that this server refuses with `-32601`, and whether they need the `experimentalApi`
        /// capability.
        pub const UNBUILT: &[(&str, Stability)] = &[$(($method, $crate::table::stability!($stability)),)*];
    };
}

macro_rules! client_requests {
    (($dollar:tt) $(
        $stability:ident $variant:ident $method:literal ($params:ty) -> $result:ty
        $({ $($reason:literal $(at $level:ident)? if |$p:ident| $test:expr $(, hides $field:literal)?;)* })?;
    )*) => {
        /// A decoded client request.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(clippy::large_enum_variant, reason = "it is moved once, from the decoder to its handler")]
        pub enum ClientRequest {
            $(#[doc = concat!("`", $method, "`")] $variant($params),)*
        }

        impl ClientRequest {
            /// Every method that clients may call, in table order.
            pub const METHODS: &[&str] = &[$($method),*];

            pub fn decode(method: &str, params: Option<&serde_json::value::RawValue>) -> Result<Self, DecodeError> {
                match method {
                    $($method => $crate::table::decode_params(params).map(Self::$variant),)*
                    _ => Err(DecodeError::unknown_method(method, Self::METHODS)),
                }
            }

            pub fn method(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $method,)*
                }
            }

            /// Returns what in this request needs the `experimentalApi` capability of a connection of `level`, if
            /// anything.
            pub fn experimental_use(&self, level: Level) -> Option<&'static str> {
                let _ = level;
                match self {
                    $(Self::$variant(params) => {
                        if $crate::table::stability!($stability) == Stability::Experimental {
                            return Some($method);
                        }
                        let _ = params;
                        $($({
                            let $p = params;
                            if $(level == Level::$level &&)? $test {
                                return Some($reason);
                            }
                        })*)?
                        None
                    })*
                }
            }
        }

        /// The rows of the client request table.
        pub fn client_requests() -> Vec<MethodInfo> {
            vec![$(MethodInfo {
                method: $method,
                stability: $crate::table::stability!($stability),
                hidden_fields: &[$($($($field,)?)*)?],
                params: |generator| generator.subschema_for::<$params>(),
                result: Some(|generator| generator.subschema_for::<$result>()),
            },)*]
        }

        /// The client's requests, one type per method.
        pub mod call {
            use super::*;

            $(
                #[doc = concat!("`", $method, "`")]
                #[derive(Clone, Copy, Debug)]
                pub struct $variant;

                impl Call for $variant {
                    const METHOD: &'static str = $method;
                    type Params = $params;
                    type Result = $result;
                }
            )*
        }

        /// Passes the rows of the client request table to a macro of the caller, for code per method: `Variant
        /// "method/name" (Params) -> Result;` and so on. The types are in this crate's root.
        #[macro_export]
        macro_rules! for_each_client_request {
            ($dollar rows:ident) => {
                $dollar rows! { $($variant $method ($params) -> $result;)* }
            };
        }
    };
}

macro_rules! server_requests {
    ($(
        $variant:ident $method:literal ($params:ty) -> $result:ty
        $({ $(experimental $field:ident $name:literal;)* })?;
    )*) => {
        /// A server request to a client.
        #[derive(Clone, Debug, PartialEq)]
        pub enum ServerRequest {
            $(#[doc = concat!("`", $method, "`")] $variant($params),)*
        }

        impl ServerRequest {
            pub const METHODS: &[&str] = &[$($method),*];

            pub fn decode(method: &str, params: Option<&serde_json::value::RawValue>) -> Result<Self, DecodeError> {
                match method {
                    $($method => $crate::table::decode_params(params).map(Self::$variant),)*
                    _ => Err(DecodeError::unknown_method(method, Self::METHODS)),
                }
            }

            pub fn method(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $method,)*
                }
            }

            /// Returns the request without its experimental fields; `None` if none of these is set.
            pub fn stable(&self) -> Option<Self> {
                match self {
                    $(Self::$variant(params) => server_call::$variant::stable_params(params).map(Self::$variant),)*
                }
            }

            /// Encodes one line, without its newline.
            pub fn encode(&self, id: &RequestId) -> Result<Vec<u8>, serde_json::Error> {
                match self {
                    $(Self::$variant(params) => encode_request(id, $method, params),)*
                }
            }
        }

        /// The rows of the server request table.
        pub fn server_requests() -> Vec<MethodInfo> {
            vec![$(MethodInfo {
                method: $method,
                stability: Stability::Stable,
                hidden_fields: &[$($($name,)*)?],
                params: |generator| generator.subschema_for::<$params>(),
                result: Some(|generator| generator.subschema_for::<$result>()),
            },)*]
        }

        /// The server's requests, one type per method.
        pub mod server_call {
            use super::*;

            $(
                #[doc = concat!("`", $method, "`")]
                #[derive(Clone, Copy, Debug)]
                pub struct $variant;

                impl Call for $variant {
                    const METHOD: &'static str = $method;
                    type Params = $params;
                    type Result = $result;
                }

                impl ServerCall for $variant {
                    fn stable_params(params: &$params) -> Option<$params> {
                        let has_experimental = false $($(|| params.$field.is_some())*)?;
                        has_experimental.then(|| {
                            #[allow(unused_mut, reason = "for requests without experimental fields")]
                            let mut stable = params.clone();
                            $($(stable.$field = None;)*)?
                            stable
                        })
                    }
                }
            )*
        }
    };
}

macro_rules! server_notifications {
    ($($kind:ident $variant:ident $method:literal ($params:ty);)*) => {
        /// A server notification.
        #[derive(Clone, Debug, PartialEq)]
        pub enum ServerNotification {
            $(#[doc = concat!("`", $method, "`")] $variant($params),)*
        }

        impl ServerNotification {
            pub const METHODS: &[&str] = &[$($method),*];

            pub fn decode(method: &str, params: Option<&serde_json::value::RawValue>) -> Result<Self, DecodeError> {
                match method {
                    $($method => $crate::table::decode_params(params).map(Self::$variant),)*
                    _ => Err(DecodeError::unknown_method(method, Self::METHODS)),
                }
            }

            pub fn method(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $method,)*
                }
            }

            /// The first level that has this notification; connections of older ones do not get it.
            pub fn first_level(&self) -> Level {
                match self {
                    $(Self::$variant(_) => $crate::table::first_level!($kind),)*
                }
            }

            /// Whether only connections with the `experimentalApi` capability get this notification.
            pub fn is_experimental(&self) -> bool {
                match self {
                    $(Self::$variant(_) => $crate::table::is_gated!($kind),)*
                }
            }

            /// Encodes one line as it is, without its newline.
            pub fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
                self.encode_with(None)
            }

            pub(crate) fn encode_with(&self, emitted_at_ms: Option<i64>) -> Result<Vec<u8>, serde_json::Error> {
                match self {
                    $(Self::$variant(params) => encode_notification($method, Some(params), emitted_at_ms),)*
                }
            }

            /// Returns the text delta that this notification carries, if any.
            pub fn text_delta(&self) -> Option<&dyn TextDelta> {
                match self {
                    $(Self::$variant(_params) => $crate::table::text_delta!($kind _params),)*
                }
            }

            /// Whether both are deltas of the same text.
            pub fn same_text(&self, next: &Self) -> bool {
                match (self, next) {
                    $((Self::$variant(_this), Self::$variant(_next)) => $crate::table::same_text!($kind _this _next),)*
                    _ => false,
                }
            }

            /// Appends the text of `next` if both are deltas of the same text.
            pub fn merge_text(&mut self, next: &Self) {
                match (self, next) {
                    $((Self::$variant(_this), Self::$variant(_next)) => $crate::table::merge_text!($kind _this _next),)*
                    _ => {}
                }
            }
        }

        /// The rows of the notification table.
        pub fn server_notifications() -> Vec<MethodInfo> {
            vec![$(MethodInfo {
                method: $method,
                stability: $crate::table::stability!($kind),
                hidden_fields: &[],
                params: |generator| generator.subschema_for::<$params>(),
                result: None,
            },)*]
        }
    };
}

macro_rules! text_delta {
    (text $params:ident) => {
        Some($params)
    };
    ($other:ident $params:ident) => {
        None
    };
}

macro_rules! same_text {
    (text $this:ident $next:ident) => {
        $this.continues_with($next)
    };
    ($other:ident $this:ident $next:ident) => {
        false
    };
}

macro_rules! merge_text {
    (text $this:ident $next:ident) => {
        if $this.continues_with($next) {
            $this.append($next)
        }
    };
    ($other:ident $this:ident $next:ident) => {
        ()
    };
}

pub(crate) use {
    client_requests, first_level, is_gated, merge_text, same_text, server_notifications, server_requests, stability,
    text_delta, unbuilt,
};
