//! How a thread's realtime session is opened: its URL, its credentials and its instructions.

use std::sync::Arc;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use loomd_config::config_toml::{RealtimeKind, RealtimeVersion};
use loomd_exec::Environment;
use loomd_model::{Bearer, BearerKind};
use loomd_protocol::{RealtimeConversationVersion, Secret};
use loomd_realtime::{Connection, Endpoint, Kind, SessionSettings, Version};
use loomd_store::{Reader, Store, ThreadId};

use super::startup_context::StartupContext;
use crate::settings::Profile;

/// What a session is opened from.
pub(crate) struct ConnectCx {
    pub thread: ThreadId,
    pub profile: Arc<Profile>,
    pub environment: Environment,
    pub store: Arc<dyn Store>,
    /// The records of the thread; `None` when it has none.
    pub reader: Option<Arc<dyn Reader>>,
    pub cwd: String,
    pub prompt: String,
    pub session_id: String,
}

impl ConnectCx {
    pub fn version(&self) -> RealtimeConversationVersion {
        match self.configured_version() {
            RealtimeVersion::V1 => RealtimeConversationVersion::V1,
            RealtimeVersion::V2 => RealtimeConversationVersion::V2,
        }
    }

    fn configured_version(&self) -> RealtimeVersion {
        let realtime = self.profile.config.config.realtime.as_ref();
        realtime.and_then(|realtime| realtime.version).unwrap_or_default()
    }

    /// The error is for the client, and carries no secret.
    pub async fn connection(self) -> Result<Connection, String> {
        let config = &self.profile.config.config;
        let version = match self.configured_version() {
            RealtimeVersion::V1 => Version::V1,
            RealtimeVersion::V2 => Version::V2,
        };
        let kind = match config.realtime.as_ref().and_then(|realtime| realtime.kind) {
            Some(RealtimeKind::Transcription) => Kind::Transcription,
            Some(RealtimeKind::Conversational) | None => Kind::Conversational,
        };
        let key = self.key().await?;
        let provider = &self.profile.provider;
        let (own, query) = provider.url("", None);
        let base_url = config.experimental_realtime_ws_base_url.as_deref().unwrap_or(&own);
        let model = config.experimental_realtime_ws_model.as_deref();
        let url = Endpoint { base_url, version, model, query }.url().map_err(|error| error.to_string())?;
        let headers = self.headers(&key)?;
        let settings = SessionSettings { version, kind, instructions: self.instructions().await };
        Ok(Connection { url, headers, settings, timeout: provider.websocket_connect_timeout() })
    }

    /// The API key of the provider. Other sign-ins do not work for realtime sessions.
    async fn key(&self) -> Result<Secret, String> {
        let provider = &self.profile.provider;
        match provider.credentials().bearer().await {
            Ok(Some(Bearer { token, kind: BearerKind::Key })) => return Ok(token),
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
        let key = self.environment.get("OPENAI_API_KEY").filter(|key| !key.trim().is_empty());
        match key.filter(|_| provider.id() == "openai") {
            Some(key) => Ok(Secret::from(key.to_owned())),
            None => Err("realtime conversation requires API key auth".into()),
        }
    }

    fn headers(&self, key: &Secret) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        if let Ok(originator) = HeaderValue::try_from(&self.profile.identity.originator) {
            headers.insert(HeaderName::from_static("originator"), originator);
        }
        let mut bearer = HeaderValue::try_from(format!("Bearer {}", key.reveal()))
            .map_err(|_| "the API key contains characters that a header cannot".to_owned())?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
        for (name, value) in self.profile.provider.headers() {
            headers.insert(name, value.clone());
        }
        let session_id = HeaderValue::try_from(&self.session_id)
            .map_err(|_| "invalid sessionId: it contains characters that a header cannot".to_owned())?;
        headers.insert(HeaderName::from_static("x-session-id"), session_id);
        Ok(headers)
    }

    /// The prompt and the context, each as configured if it is.
    async fn instructions(&self) -> String {
        let config = &self.profile.config.config;
        let prompt = config.experimental_realtime_ws_backend_prompt.as_ref().unwrap_or(&self.prompt).clone();
        let context = match &config.experimental_realtime_ws_startup_context {
            Some(context) => Some(context.clone()).filter(|context| !context.is_empty()),
            None => {
                let (reader, store) = (self.reader.as_deref(), &*self.store);
                let home = self.environment.get("HOME");
                StartupContext { thread: self.thread, reader, store, cwd: &self.cwd, home }.text().await
            }
        };
        let parts = [Some(prompt).filter(|prompt| !prompt.is_empty()), context];
        parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
    }
}
