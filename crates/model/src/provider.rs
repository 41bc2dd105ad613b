//! A provider, resolved from the configuration and the environment.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use loomd_config::config_toml::{ModelProvider, WireApi};
use loomd_protocol::{AbsolutePathBuf, Secret};
use percent_encoding::percent_decode_str;

use crate::ModelError;
use crate::credentials::{Bearer, CommandCredentials, Credentials, FixedCredentials};
use crate::record::Recorder;
use crate::rehearsal::Scenario;

const OPENAI: &str = "openai";
const REHEARSAL: &str = "rehearsal";
const OPENAI_URL: &str = "https://api.openai.com/v1";
const ANTHROPIC_URL: &str = "https://api.anthropic.com/v1";
const CHATGPT_URL: &str = "https://chatgpt.com/backend-api/codex";

/// How to reach one provider. Immutable, and shared by all sessions that use it.
pub struct Provider {
    id: String,
    name: String,
    wire: WireApi,
    base_url: Option<String>,
    /// Includes the leading `?`.
    query: String,
    headers: HeaderMap,
    credentials: Arc<dyn Credentials>,
    uses_account: bool,
    request_max_retries: u64,
    stream_max_retries: u64,
    stream_idle_timeout: Duration,
    websocket_connect_timeout: Duration,
    websockets: bool,
    /// Served by the built-in model, whatever its id.
    is_rehearsal: bool,
    scenario: Option<Arc<Scenario>>,
    recorder: Option<Arc<Recorder>>,
}

impl Provider {
    /// `account` are the credentials of the user's OpenAI account. Used only if the configuration sets
    /// `requires_openai_auth`.
    pub fn new(
        id: &str,
        config: &ModelProvider,
        env: &dyn Fn(&str) -> Option<String>,
        account: Option<Arc<dyn Credentials>>,
    ) -> Arc<Self> {
        Arc::new(Self::build(id, config, env, account))
    }

    fn build(
        id: &str,
        config: &ModelProvider,
        env: &dyn Fn(&str) -> Option<String>,
        account: Option<Arc<dyn Credentials>>,
    ) -> Self {
        let base_url = local_url(id, env).or_else(|| config.base_url.clone());
        let (base_url, password) = base_url.map(split_password).unzip();
        let path = |variable: &str, configured: &Option<AbsolutePathBuf>| {
            non_blank(env, variable).map(PathBuf::from).or_else(|| configured.as_ref().map(|path| path.to_path_buf()))
        };
        let (record, scenario) = (path("LOOMD_RECORD", &config.record), path("LOOMD_SCENARIO", &config.scenario));
        let is_rehearsal = id == REHEARSAL && base_url.is_none();
        let mut headers = headers(id, config, env);
        if let Some(password) = password.flatten() {
            headers.entry(AUTHORIZATION).or_insert(password);
        }
        Self {
            id: id.into(),
            name: config.name.clone(),
            wire: config.wire_api,
            base_url,
            query: query(config.query_params.as_ref()),
            headers,
            credentials: credentials(config, env, account),
            uses_account: config.requires_openai_auth,
            request_max_retries: config.request_max_retries(),
            stream_max_retries: config.stream_max_retries(),
            stream_idle_timeout: config.stream_idle_timeout(),
            websocket_connect_timeout: config.websocket_connect_timeout(),
            websockets: config.supports_websockets,
            is_rehearsal,
            scenario: scenario.map(Scenario::new),
            recorder: record.map(|path| Recorder::new(path, secrets(config, env))),
        }
    }

    /// Returns a provider of this id and configuration that is never called: the rehearsal plays `scenario` in its
    /// place.
    pub fn scripted(id: &str, config: &ModelProvider, scenario: Arc<Scenario>) -> Arc<Self> {
        let config = ModelProvider { record: None, ..config.clone() };
        let provider = Self::build(id, &config, &|_| None, None);
        Arc::new(Self { is_rehearsal: true, scenario: Some(scenario), ..provider })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// How often the caller may retry after a stream broke.
    pub fn stream_max_retries(&self) -> u64 {
        self.stream_max_retries
    }

    /// The limit for the response head, and then for each event.
    pub fn stream_idle_timeout(&self) -> Duration {
        self.stream_idle_timeout
    }

    /// Whether calls use the user's OpenAI account.
    pub fn uses_account(&self) -> bool {
        self.uses_account
    }

    /// Whether the provider supports [`crate::Session::compact`].
    pub fn supports_compaction(&self) -> bool {
        self.name == "OpenAI"
    }

    pub(crate) fn wire(&self) -> WireApi {
        self.wire
    }

    pub(crate) fn websockets(&self) -> bool {
        self.websockets
    }

    /// The limit for opening a websocket.
    pub fn websocket_connect_timeout(&self) -> Duration {
        self.websocket_connect_timeout
    }

    pub(crate) fn request_max_retries(&self) -> u64 {
        self.request_max_retries
    }

    /// The source of the bearer tokens of its calls.
    pub fn credentials(&self) -> &dyn Credentials {
        &*self.credentials
    }

    /// The configured headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Whether the built-in model serves this provider.
    pub(crate) fn is_rehearsal(&self) -> bool {
        self.is_rehearsal
    }

    pub(crate) fn scenario(&self) -> Option<Arc<Scenario>> {
        self.scenario.clone()
    }

    pub(crate) fn recorder(&self) -> Option<&Arc<Recorder>> {
        self.recorder.as_ref()
    }

    pub(crate) fn is_openai(&self) -> bool {
        self.id == OPENAI
    }

    /// The host of the configured base URL.
    pub(crate) fn host(&self) -> Option<String> {
        let uri: hyper::Uri = self.base_url.as_deref()?.parse().ok()?;
        uri.host().map(str::to_ascii_lowercase)
    }

    /// Azure stores items, so they are sent with their ids.
    pub(crate) fn stores_items(&self) -> bool {
        let host = self.host().unwrap_or_default();
        self.name.eq_ignore_ascii_case("azure") || host.split('.').skip(1).any(|label| label.starts_with("azure"))
    }

    /// Returns the URL of a route, and separately the query, which may contain a key and must not appear in messages.
    pub fn url(&self, route: &str, bearer: Option<&Bearer>) -> (String, &str) {
        let default = match self.wire {
            WireApi::Anthropic => ANTHROPIC_URL,
            _ if bearer.is_some_and(Bearer::is_chatgpt) => CHATGPT_URL,
            _ => OPENAI_URL,
        };
        let base = self.base_url.as_deref().unwrap_or(default).trim_end_matches('/');
        (format!("{base}{route}"), &self.query)
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// The environment's URL for local servers.
fn local_url(id: &str, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    if !matches!(id, "ollama" | "lmstudio") {
        return None;
    }
    let url = non_blank(env, "CODEX_OSS_BASE_URL");
    url.or_else(|| non_blank(env, "CODEX_OSS_PORT").map(|port| format!("http://localhost:{port}/v1")))
}

/// Removes user and password from a URL, so that no message shows them, and returns the `Authorization` header that
/// carries them instead.
fn split_password(url: String) -> (String, Option<HeaderValue>) {
    let Some((scheme, rest)) = url.split_once("://") else { return (url, None) };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let Some((user, host)) = rest[..end].rsplit_once('@') else { return (url, None) };
    let basic = STANDARD.encode(percent_decode_str(user).collect::<Vec<u8>>());
    let header = HeaderValue::try_from(format!("Basic {basic}")).ok().map(|mut header| {
        header.set_sensitive(true);
        header
    });
    (format!("{scheme}://{host}{}", &rest[end..]), header)
}

/// Formats query parameters. Values are sent as configured, except for characters that a URL cannot contain.
fn query(params: Option<&BTreeMap<String, String>>) -> String {
    let mut query = String::new();
    for (name, value) in params.into_iter().flatten() {
        query.push(if query.is_empty() { '?' } else { '&' });
        for byte in format!("{name}={value}").bytes() {
            match byte {
                b'!'..=b'~' if !matches!(byte, b'"' | b'#' | b'<' | b'>') => query.push(byte.into()),
                _ => query.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    query
}

fn headers(id: &str, config: &ModelProvider, env: &dyn Fn(&str) -> Option<String>) -> HeaderMap {
    let openai = [("OpenAI-Organization", "OPENAI_ORGANIZATION"), ("OpenAI-Project", "OPENAI_PROJECT")];
    let openai = openai.into_iter().filter(|_| id == OPENAI);
    let named = config.env_http_headers.iter().flatten().map(|(name, variable)| (name.as_str(), variable.as_str()));
    let from_env = openai.chain(named).filter_map(|(name, variable)| Some((name, non_blank(env, variable)?)));
    let fixed = config.http_headers.iter().flatten().map(|(name, value)| (name.as_str(), value.reveal().to_owned()));
    let mut headers = HeaderMap::new();
    for (name, value) in fixed.chain(from_env) {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
            _ => tracing::warn!(provider = id, header = name, "invalid configured header: not sent"),
        }
    }
    headers
}

/// The values to remove from recordings.
fn secrets(config: &ModelProvider, env: &dyn Fn(&str) -> Option<String>) -> Vec<Secret> {
    let variables = config.env_key.iter().chain(config.env_http_headers.iter().flatten().map(|(_, variable)| variable));
    let from_env = variables.filter_map(|variable| non_blank(env, variable)).map(Secret::from);
    let fixed =
        config.experimental_bearer_token.iter().chain(config.http_headers.iter().flatten().map(|(_, value)| value));
    from_env.chain(fixed.cloned()).collect()
}

fn credentials(
    config: &ModelProvider,
    env: &dyn Fn(&str) -> Option<String>,
    account: Option<Arc<dyn Credentials>>,
) -> Arc<dyn Credentials> {
    if let Some(variable) = &config.env_key {
        return Arc::new(FixedCredentials(match non_blank(env, variable) {
            Some(key) => Ok(Some(Bearer::key(Secret::from(key)))),
            None => Err(ModelError::MissingKey {
                variable: variable.clone(),
                instructions: config.env_key_instructions.clone(),
            }),
        }));
    }
    if let Some(token) = &config.experimental_bearer_token {
        return Arc::new(FixedCredentials(Ok(Some(Bearer::key(token.clone())))));
    }
    if let Some(auth) = &config.auth {
        return Arc::new(CommandCredentials::new(auth.clone()));
    }
    account.filter(|_| config.requires_openai_auth).unwrap_or_else(|| Arc::new(FixedCredentials(Ok(None))))
}

/// The value of a variable, unless it is unset or blank.
fn non_blank(env: &dyn Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    env(name).filter(|value| !value.trim().is_empty())
}
