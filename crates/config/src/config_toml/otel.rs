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
    pub log_user_prompt: Option<bool>,
    /// The exporter of log events.
    pub exporter: Option<OtelExporter>,
    pub trace_exporter: Option<OtelExporter>,
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
        #[serde(default)]
        protocol: OtelProtocol,
        #[serde(default, serialize_with = "as_written")]
        headers: BTreeMap<String, Secret>,
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
    pub ca_certificate: Option<AbsolutePathBuf>,
    pub client_certificate: Option<AbsolutePathBuf>,
    pub client_private_key: Option<AbsolutePathBuf>,
}
