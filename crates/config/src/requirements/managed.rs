//! Requirements that an organisation manages for its members. Fetching them is somebody else's task; here is
//! what was fetched last, or why it could not be.

use std::sync::{Arc, Mutex, PoisonError};

use loomd_protocol::JsonValue;
use serde_json::json;
use thiserror::Error;

/// What was fetched last. Shared by whoever fetches and whoever loads configuration.
#[derive(Debug)]
pub struct ManagedRequirements(Mutex<Arc<FetchResult>>);

/// Nothing is managed.
impl Default for ManagedRequirements {
    fn default() -> Self {
        Self(Mutex::new(Arc::new(Ok(None))))
    }
}

type FetchResult = Result<Option<String>, CloudError>;

/// Why the requirements are not known. Nothing that depends on configuration works then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("failed to load your workspace-managed config")]
pub struct CloudError {
    /// `Parse`, `RequestFailed`, `Timeout`, `Auth` or `Internal`.
    pub code: &'static str,
    pub detail: String,
    pub status: Option<u16>,
}

impl CloudError {
    /// For programs: the `data` of the error.
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
    /// The text of a `requirements.toml`, or `None` where nothing is managed.
    pub fn set(&self, state: FetchResult) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
    }

    pub fn get(&self) -> Arc<FetchResult> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
