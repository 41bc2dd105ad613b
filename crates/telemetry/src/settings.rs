//! `[otel]`, checked: which collectors there are, and what is sent to them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use loomd_config::config_toml::{ConfigToml, OtelExporter, OtelProtocol, OtelTls};
use loomd_model::{Http, TlsFiles};
use loomd_protocol::Secret;

use crate::collector::Collector;
use crate::context::SpanContext;

/// What every export names as its source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    pub service: String,
    pub version: String,
    pub environment: String,
    /// Sent with log events only.
    pub host: Option<String>,
}

/// The exporters of a configuration. Nothing is connected or sent yet.
#[derive(Default)]
pub struct Settings {
    pub(crate) resource: Resource,
    pub(crate) log_user_prompt: bool,
    pub(crate) logs: Option<Collector>,
    pub(crate) traces: Option<Collector>,
    pub(crate) metrics: Option<Collector>,
    /// The parent of spans whose request names none.
    pub(crate) parent: Option<SpanContext>,
    /// What is configured and not supported, for the user.
    pub warnings: Vec<String>,
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error loading otel config: invalid value for `otel.{key}`: {problem}")]
pub struct SettingsError {
    key: &'static str,
    problem: String,
}

/// The environment in which resource attribute `env` is without a configured one.
const DEFAULT_ENVIRONMENT: &str = "dev";

impl Settings {
    /// Checks the exporters of a configuration; reads their certificates. `env` returns variables of the process.
    pub fn new(
        config: &ConfigToml,
        version: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        let Some(otel) = &config.otel else { return Ok(Self::default()) };
        let mut warnings = Vec::new();
        let mut exporter = |key, exporter: Option<&OtelExporter>| match exporter {
            None | Some(OtelExporter::None | OtelExporter::Statsig) => Ok(None),
            Some(OtelExporter::OtlpHttp { endpoint, protocol, headers, tls }) => {
                collector(endpoint, *protocol, headers, tls.as_ref(), env)
                    .map(Some)
                    .map_err(|problem| SettingsError { key, problem })
            }
            Some(OtelExporter::OtlpGrpc { endpoint, .. }) => {
                parse_endpoint(endpoint).map_err(|problem| SettingsError { key, problem })?;
                warnings.push(format!(
                    "`otel.{key}`: `otlp-grpc` is not supported and nothing is exported; \
                     use `otlp-http`, which collectors serve on port 4318"
                ));
                Ok(None)
            }
        };
        let (logs, traces) =
            (exporter("exporter", otel.exporter.as_ref())?, exporter("trace_exporter", otel.trace_exporter.as_ref())?);
        let analytics = config.analytics.as_ref().and_then(|analytics| analytics.enabled);
        let metrics = match analytics {
            Some(false) => None,
            _ => exporter("metrics_exporter", otel.metrics_exporter.as_ref())?,
        };
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let parent = set("TRACEPARENT").and_then(|parent| SpanContext::parse(&parent, set("TRACESTATE").as_deref()));
        Ok(Self {
            resource: Resource {
                service: "loomd".into(),
                version: version.into(),
                environment: otel.environment.clone().unwrap_or_else(|| DEFAULT_ENVIRONMENT.into()),
                host: logs.as_ref().and_then(|_| host_name(env)),
            },
            log_user_prompt: otel.log_user_prompt.unwrap_or(false),
            logs,
            traces,
            metrics,
            parent,
            warnings,
        })
    }

    /// Whether something is exported.
    pub fn is_on(&self) -> bool {
        self.logs.is_some() || self.traces.is_some() || self.metrics.is_some()
    }
}

fn host_name(env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| env("HOSTNAME"));
    name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty())
}

fn collector(
    endpoint: &str,
    protocol: OtelProtocol,
    headers: &BTreeMap<String, Secret>,
    tls: Option<&OtelTls>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Collector, String> {
    let endpoint = parse_endpoint(endpoint)?;
    let mut sent = HeaderMap::new();
    for (name, value) in headers {
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("invalid header name `{name}`"))?;
        let mut value =
            HeaderValue::from_str(value.reveal()).map_err(|_| format!("the value of header `{name}` is invalid"))?;
        value.set_sensitive(true);
        sent.insert(header, value);
    }
    let http = match tls {
        Some(tls) => Http::with_tls(env, tls_files(tls)?).map_err(|error| error.to_string())?,
        None => Http::new(env),
    };
    Ok(Collector::new(endpoint, protocol, sent, http))
}

/// An absolute `http` or `https` URL.
fn parse_endpoint(endpoint: &str) -> Result<Uri, String> {
    let uri: Uri = endpoint.parse().map_err(|error| format!("invalid endpoint `{endpoint}`: {error}"))?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some_and(|host| !host.is_empty()) => Ok(uri),
        _ => Err(format!("invalid endpoint `{endpoint}`: expected an `http` or `https` URL")),
    }
}

fn tls_files(tls: &OtelTls) -> Result<TlsFiles, String> {
    let read = |path: &Path| fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()));
    let client = match (&tls.client_certificate, &tls.client_private_key) {
        (Some(certificate), Some(key)) => Some((read(certificate)?, read(key)?)),
        (None, None) => None,
        _ => return Err("`client-certificate` and `client-private-key` must be set together".into()),
    };
    let roots = tls.ca_certificate.as_ref().map(|path| read(path)).transpose()?;
    Ok(TlsFiles { roots, client })
}

/// Shared by all exports of a pipeline.
pub(crate) type SharedResource = Arc<Resource>;
