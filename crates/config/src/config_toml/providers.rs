//! `[model_providers.<id>]`: how to reach a model. Also defines the built-in providers.

use std::collections::BTreeMap;
use std::time::Duration;

use loomd_protocol::AbsolutePathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::secret::{Secret, as_written};

/// The upper bound of configured retries.
const MAX_RETRIES: u64 = 100;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelProvider {
    /// The name that is shown to users.
    pub name: String,
    /// The URL that paths such as `/responses` are added to. Default: the one of the account.
    pub base_url: Option<String>,
    /// The environment variable that has the API key, which is sent as a bearer token.
    pub env_key: Option<String>,
    /// Shown to the user when that variable is missing.
    pub env_key_instructions: Option<String>,
    /// The bearer token itself; prefer `env_key`.
    #[serde(default, serialize_with = "as_written")]
    pub experimental_bearer_token: Option<Secret>,
    /// A program that prints the bearer token.
    pub auth: Option<ProviderAuth>,
    /// The API of the provider. Default: `responses`.
    #[serde(default)]
    pub wire_api: WireApi,
    /// Parameters that are added to every URL.
    pub query_params: Option<BTreeMap<String, String>>,
    /// Headers of every request.
    #[serde(default, serialize_with = "as_written")]
    pub http_headers: Option<BTreeMap<String, Secret>>,
    /// Headers of every request, with the environment variables that have their values.
    pub env_http_headers: Option<BTreeMap<String, String>>,
    /// Retries of a request before its response begins; at most 100. Default: 4.
    pub request_max_retries: Option<u64>,
    /// Retries of a broken response; at most 100. Default: 5.
    pub stream_max_retries: Option<u64>,
    /// The longest pause within a response, in milliseconds. Default: 300000.
    pub stream_idle_timeout_ms: Option<u64>,
    /// The limit of connecting a websocket, in milliseconds. Default: 15000.
    pub websocket_connect_timeout_ms: Option<u64>,
    /// Whether calls use the account. Default: `false`.
    #[serde(default)]
    pub requires_openai_auth: bool,
    /// Whether the Responses API is used over a websocket. Default: `false`.
    #[serde(default)]
    pub supports_websockets: bool,
    /// Set from `[loomd]` for every provider.
    #[serde(skip)]
    pub record: Option<AbsolutePathBuf>,
    /// Set from `[loomd]`; for the rehearsal.
    #[serde(skip)]
    pub scenario: Option<AbsolutePathBuf>,
}

/// A built-in provider with its API key in the environment. A configured provider of the same id overrides it.
struct KeyedProvider {
    id: &'static str,
    name: &'static str,
    base_url: &'static str,
    env_key: &'static str,
    wire_api: WireApi,
}

const fn keyed(
    id: &'static str,
    name: &'static str,
    base_url: &'static str,
    env_key: &'static str,
    wire_api: WireApi,
) -> KeyedProvider {
    KeyedProvider { id, name, base_url, env_key, wire_api }
}

/// The provider of the account is `openai`; it never reads keys from the environment.
const KEYED: &[KeyedProvider] = &[
    keyed("openai-api", "OpenAI API", "https://api.openai.com/v1", "OPENAI_API_KEY", WireApi::Responses),
    keyed("anthropic", "Anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", WireApi::Anthropic),
    keyed("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", WireApi::Chat),
    keyed("deepseek", "DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", WireApi::Chat),
    keyed("mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", WireApi::Chat),
    keyed("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", WireApi::Chat),
    keyed("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY", WireApi::Chat),
    keyed(
        "gemini",
        "Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        WireApi::Chat,
    ),
    keyed("moonshot", "Moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", WireApi::Chat),
    keyed("together", "Together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", WireApi::Chat),
    keyed("fireworks", "Fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY", WireApi::Chat),
    keyed("cerebras", "Cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", WireApi::Chat),
];

/// The API that a provider implements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WireApi {
    #[default]
    Responses,
    /// Chat Completions.
    Chat,
    /// Anthropic Messages.
    Anthropic,
}

/// A program that prints a bearer token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderAuth {
    /// The program.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Its time limit, in milliseconds. Default: 5000.
    #[serde(serialize_with = "ProviderAuth::show_timeout")]
    pub timeout_ms: Option<u64>,
    /// The age after which a token is requested again, in milliseconds. Default: 300000.
    #[serde(serialize_with = "ProviderAuth::show_refresh_interval")]
    pub refresh_interval_ms: Option<u64>,
    /// Its working directory. Default: that of loomd.
    pub cwd: Option<AbsolutePathBuf>,
}

impl ModelProvider {
    /// The ids that a file cannot define.
    pub const RESERVED: [&str; 3] = ["openai", "ollama", "lmstudio"];

    /// Returns a provider that exists without configuration.
    pub fn built_in(id: &str) -> Option<Self> {
        let provider = |name: &str, base_url: Option<&str>| Self {
            name: name.into(),
            base_url: base_url.map(Into::into),
            ..Self::default()
        };
        Some(match id {
            "openai" => Self { requires_openai_auth: true, supports_websockets: true, ..provider("OpenAI", None) },
            "ollama" => provider("Ollama", Some("http://localhost:11434/v1")),
            "lmstudio" => provider("LM Studio", Some("http://localhost:1234/v1")),
            "rehearsal" => provider("Rehearsal", None),
            _ => {
                let keyed = KEYED.iter().find(|keyed| keyed.id == id)?;
                Self {
                    env_key: Some(keyed.env_key.into()),
                    wire_api: keyed.wire_api,
                    ..provider(keyed.name, Some(keyed.base_url))
                }
            }
        })
    }

    /// Returns every id that [`ModelProvider::built_in`] knows, local ones last.
    pub fn built_in_ids() -> impl Iterator<Item = &'static str> {
        let keyed = KEYED.iter().map(|keyed| keyed.id);
        std::iter::once("openai").chain(keyed).chain(["ollama", "lmstudio", "rehearsal"])
    }

    pub fn request_max_retries(&self) -> u64 {
        self.request_max_retries.unwrap_or(4).min(MAX_RETRIES)
    }

    pub fn stream_max_retries(&self) -> u64 {
        self.stream_max_retries.unwrap_or(5).min(MAX_RETRIES)
    }

    pub fn stream_idle_timeout(&self) -> Duration {
        Duration::from_millis(self.stream_idle_timeout_ms.unwrap_or(300_000))
    }

    pub fn websocket_connect_timeout(&self) -> Duration {
        Duration::from_millis(self.websocket_connect_timeout_ms.unwrap_or(15_000))
    }

    /// Returns why this provider cannot work, if so.
    pub(crate) fn problem(&self) -> Option<String> {
        let auth = self.auth.as_ref()?;
        if auth.command.trim().is_empty() {
            return Some("provider auth.command must not be empty".into());
        }
        let others: Vec<_> = [
            ("env_key", self.env_key.is_some()),
            ("experimental_bearer_token", self.experimental_bearer_token.is_some()),
            ("requires_openai_auth", self.requires_openai_auth),
        ]
        .into_iter()
        .filter_map(|(key, set)| set.then_some(key))
        .collect();
        (!others.is_empty()).then(|| format!("provider auth cannot be combined with {}", others.join(", ")))
    }
}

impl ProviderAuth {
    const TIMEOUT_MS: u64 = 5_000;
    const REFRESH_INTERVAL_MS: u64 = 300_000;

    fn show_timeout<S: Serializer>(set: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(set.unwrap_or(Self::TIMEOUT_MS))
    }

    fn show_refresh_interval<S: Serializer>(set: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(set.unwrap_or(Self::REFRESH_INTERVAL_MS))
    }

    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms.unwrap_or(Self::TIMEOUT_MS))
    }

    pub fn refresh_interval(&self) -> Duration {
        Duration::from_millis(self.refresh_interval_ms.unwrap_or(Self::REFRESH_INTERVAL_MS))
    }
}
