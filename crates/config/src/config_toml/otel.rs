//! `[otel]`: exporters of telemetry.

use std::collections::BTreeMap;

use loomd_protocol::AbsolutePathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::secret::{Secret, as_written};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Otel {
    /// The resource attribute `env`. Default: `dev`.
    pub environment: Option<String>,
    /// Whether log events have texts: prompts, and arguments and outputs of tools. Default: false.
    pub log_user_prompt: Option<bool>,
    /// The exporter of log events. Default: `none`.
    pub exporter: Option<OtelExporter>,
    /// The exporter of spans. Default: `none`.
    pub trace_exporter: Option<OtelExporter>,
    /// The exporter of metrics. Default: `statsig`, to which nothing is sent. Without effect if `analytics.enabled` is
    /// false.
    pub metrics_exporter: Option<OtelExporter>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OtelExporter {
    /// Nothing is exported.
    None,
    /// Accepted for other programs that share the file; nothing is exported.
    Statsig,
    OtlpHttp {
        /// The full URL; nothing is appended.
        endpoint: String,
        /// The encoding of requests. Default: `binary`, which is protobuf.
        #[serde(default)]
        protocol: OtelProtocol,
        /// Further headers of requests.
        #[serde(default, serialize_with = "as_written")]
        headers: BTreeMap<String, Secret>,
        /// Certificates of the connection.
        tls: Option<OtelTls>,
    },
    /// Not supported: clients are warned and nothing is exported.
    OtlpGrpc {
        /// The URL of the collector.
        endpoint: String,
        /// Further headers of requests.
        #[serde(default, serialize_with = "as_written")]
        headers: BTreeMap<String, Secret>,
        /// Certificates of the connection.
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
    /// A file of root certificates that are trusted in addition, in PEM.
    pub ca_certificate: Option<AbsolutePathBuf>,
    /// A file with the certificate of this client, in PEM.
    pub client_certificate: Option<AbsolutePathBuf>,
    /// A file with the private key of that certificate, in PEM.
    pub client_private_key: Option<AbsolutePathBuf>,
}
