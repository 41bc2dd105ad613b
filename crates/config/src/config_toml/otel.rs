//! `[otel]`: exporters of telemetry.

use std::collections::BTreeMap;

use loomd_protocol::AbsolutePathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::secret::{Secret, as_written};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Otel {
    /// The resource attribute `env`.
    pub environment: Option<String>,
    /// Accepted for other programs that share the file; no effect.
    pub log_user_prompt: Option<bool>,
    /// The exporter of log events.
    pub exporter: Option<OtelExporter>,
    /// Accepted for other programs that share the file; no effect.
    pub trace_exporter: Option<OtelExporter>,
    /// Accepted for other programs that share the file; no effect.
    pub metrics_exporter: Option<OtelExporter>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OtelExporter {
    None,
    Statsig,
    OtlpHttp {
        /// The full URL; nothing is appended.
        endpoint: String,
        /// Accepted for other programs that share the file; no effect.
        #[serde(default)]
        protocol: OtelProtocol,
        /// Accepted for other programs that share the file; no effect.
        #[serde(default, serialize_with = "as_written")]
        headers: BTreeMap<String, Secret>,
        /// Accepted for other programs that share the file; no effect.
        tls: Option<OtelTls>,
    },
    OtlpGrpc {
        endpoint: String,
        #[serde(default, serialize_with = "as_written")]
        headers: BTreeMap<String, Secret>,
        tls: Option<OtelTls>,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OtelProtocol {
    Json,
    #[default]
    Binary,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct OtelTls {
    /// Accepted for other programs that share the file; no effect.
    pub ca_certificate: Option<AbsolutePathBuf>,
    /// Accepted for other programs that share the file; no effect.
    pub client_certificate: Option<AbsolutePathBuf>,
    /// Accepted for other programs that share the file; no effect.
    pub client_private_key: Option<AbsolutePathBuf>,
}
