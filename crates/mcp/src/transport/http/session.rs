//! The session of an HTTP connection: its id, the negotiated version, and what opens it again.

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::MutexGuard;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

#[derive(Default)]
pub(super) struct Session {
    state: Mutex<State>,
    reopening: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
    initialize: Option<Bytes>,
}

#[derive(Deserialize)]
struct Answer {
    result: Initialized,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialized {
    protocol_version: String,
}

impl Session {
    pub fn id(&self) -> Option<HeaderValue> {
        self.state.lock().id.clone()
    }

    /// The `initialize` request, to open the session again.
    pub fn initialize(&self) -> Option<Bytes> {
        self.state.lock().initialize.clone()
    }

    pub fn remember_initialize(&self, body: Bytes) {
        self.state.lock().initialize = Some(body);
    }

    /// Takes the id from the answer to `initialize`.
    pub fn opened(&self, headers: &HeaderMap) {
        self.state.lock().id = headers.get(SESSION_ID).cloned();
    }

    /// Held while the session is opened again.
    pub async fn reopening(&self) -> MutexGuard<'_, ()> {
        self.reopening.lock().await
    }

    /// Takes the negotiated version from the first message, which answers `initialize`.
    pub fn learn_version(&self, message: &[u8]) {
        let mut state = self.state.lock();
        if state.version.is_none()
            && let Ok(answer) = serde_json::from_slice::<Answer>(message)
        {
            state.version = HeaderValue::try_from(answer.result.protocol_version).ok();
        }
    }

    /// Adds the headers of the session. `id` is the one that the request belongs to: not always the latest.
    pub fn add_headers(&self, id: Option<&HeaderValue>, headers: &mut HeaderMap) {
        if let Some(id) = id {
            headers.insert(SESSION_ID, id.clone());
        }
        if let Some(version) = &self.state.lock().version {
            headers.insert(PROTOCOL_VERSION, version.clone());
        }
    }
}
