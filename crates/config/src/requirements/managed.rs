//! Requirements that an organisation manages for its members. Holds the last fetched text, or why fetching failed; the
//! server fetches it.

use std::sync::Arc;

use loomd_protocol::JsonValue;
use parking_lot::Mutex;
use serde_json::json;
use thiserror::Error;

/// The result of the last fetch, shared with the server, which updates it.
#[derive(Debug)]
pub struct ManagedRequirements(Mutex<Arc<FetchResult>>);

/// Without managed requirements.
impl Default for ManagedRequirements {
    fn default() -> Self {
        Self(Mutex::new(Arc::new(Ok(None))))
    }
}

type FetchResult = Result<Option<String>, CloudError>;

/// Why the requirements could not be fetched. Requests that depend on configuration fail then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("failed to load your workspace-managed config")]
pub struct CloudError {
    /// `Parse`, `RequestFailed`, `Timeout`, `Auth` or `Internal`.
    pub code: &'static str,
    pub detail: String,
    pub status: Option<u16>,
}

impl CloudError {
    /// The `data` of the RPC error.
    pub fn data(&self) -> JsonValue {
        let mut data = json!({ "reason": "cloudRequirements", "errorCode": self.code, "detail": self.detail });
        if let Some(status) = self.status {
            data["statusCode"] = status.into();
        }
        if self.code == "Auth" {
            data["action"] = "relogin".into();
        }
        data
    }
}

impl ManagedRequirements {
    /// Sets the text of a `requirements.toml`; `None` without managed requirements.
    pub fn set(&self, state: FetchResult) {
        *self.0.lock() = Arc::new(state);
    }

    pub fn get(&self) -> Arc<FetchResult> {
        Arc::clone(&self.0.lock())
    }
}
