//! One collector: where records are posted, and what becomes of a failure.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode, Uri};
use loomd_config::config_toml::OtelProtocol;
use loomd_model::Http;

/// How long one request to a collector may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// A collector of one kind of records.
pub(crate) struct Collector {
    endpoint: Uri,
    pub protocol: OtelProtocol,
    headers: HeaderMap,
    http: Arc<Http>,
    /// Whether the last export failed, which has been logged.
    failing: bool,
}

/// Why an export failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExportError {
    /// The collector may take the same records later.
    Temporary,
    Refused,
}

impl Collector {
    pub fn new(endpoint: Uri, protocol: OtelProtocol, headers: HeaderMap, http: Arc<Http>) -> Self {
        Self { endpoint, protocol, headers, http, failing: false }
    }

    /// Posts an export request. The first failure is logged, and the first success after that.
    pub async fn export(&mut self, body: Vec<u8>) -> Result<(), ExportError> {
        let done = self.post(body.into()).await;
        match &done {
            Ok(()) if self.failing => tracing::info!(collector = self.name(), "telemetry is exported again"),
            Err((_, problem)) if !self.failing => tracing::error!(
                collector = self.name(),
                problem,
                "telemetry cannot be exported; further failures are not logged until an export succeeds"
            ),
            _ => {}
        }
        self.failing = done.is_err();
        done.map_err(|(error, _)| error)
    }

    async fn post(&self, body: Bytes) -> Result<(), (ExportError, String)> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.endpoint.clone();
        let headers = request.headers_mut();
        let content = match self.protocol {
            OtelProtocol::Json => "application/json",
            OtelProtocol::Binary => "application/x-protobuf",
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("loomd/", env!("CARGO_PKG_VERSION"))));
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        let response = self.http.fetch(request, REQUEST_TIMEOUT).await;
        let response = response.map_err(|error| (ExportError::Temporary, error.to_string()))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status @ (StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT) => Err((ExportError::Temporary, status.to_string())),
            status => Err((ExportError::Refused, status.to_string())),
        }
    }

    /// The host and port, for logs: paths, queries and user names may be secrets.
    fn name(&self) -> String {
        let port = self.endpoint.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}", self.endpoint.host().unwrap_or_default())
    }
}
