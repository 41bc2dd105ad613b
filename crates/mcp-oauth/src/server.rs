//! An MCP server, as far as OAuth concerns it.

use std::fmt::Write as _;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use loomd_config::config_toml::McpServer;
use loomd_mcp::{Endpoint, HttpServer, ServerConfig};
use serde_json::json;
use sha2::{Digest as _, Sha256};

/// A server that is reached over HTTP.
#[derive(Clone, Debug)]
pub struct OauthServer {
    pub name: String,
    pub url: String,
    /// The configured scopes.
    pub scopes: Option<Vec<String>>,
    /// `oauth_resource`: what tokens are requested for.
    pub resource: Option<String>,
    /// The configured headers, which are also sent to the server's own metadata.
    pub(crate) headers: HeaderMap,
    /// A token or an `Authorization` header is configured, so OAuth is not used.
    pub(crate) has_authorization: bool,
}

impl OauthServer {
    /// `env` returns environment variables.
    pub fn new(name: &str, server: &HttpServer, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut headers = HeaderMap::new();
        let fixed = server.headers.iter().map(|(name, value)| (name, Some(value.reveal().to_owned())));
        let of_env = server.env_headers.iter().map(|(name, variable)| (name, env(variable)));
        for (name, value) in fixed.chain(of_env) {
            let value = value.filter(|value| !value.trim().is_empty());
            let value = value.and_then(|value| HeaderValue::from_str(&value).ok());
            if let (Ok(name), Some(value)) = (HeaderName::try_from(name), value) {
                headers.insert(name, value);
            }
        }
        Self {
            name: name.to_owned(),
            url: server.url.clone(),
            scopes: server.scopes.clone(),
            resource: server.oauth_resource.clone().filter(|resource| !resource.trim().is_empty()),
            headers,
            has_authorization: server.has_own_authorization(),
        }
    }

    /// A configured server; `None` if it is not reached over HTTP.
    pub fn configured(name: &str, config: &McpServer, env: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        match ServerConfig::new(name, config).endpoint {
            Endpoint::Http(server) => Some(Self::new(name, &server, env)),
            Endpoint::Stdio(_) => None,
        }
    }

    /// The name of the server's tokens in a store: a server with another URL has other tokens.
    pub(crate) fn key(&self) -> String {
        let identity = json!({ "type": "http", "url": self.url, "headers": {} });
        let digest = Sha256::digest(identity.to_string());
        let mut key = format!("{}|", self.name);
        for byte in &digest[..8] {
            _ = write!(key, "{byte:02x}");
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(table: &str) -> Option<OauthServer> {
        let config: McpServer = serde_json::from_str(table).unwrap();
        OauthServer::configured("oau", &config, &|name| (name == "SET").then(|| "from env".to_owned()))
    }

    #[test]
    fn the_key_is_the_one_that_other_programs_of_this_home_use() {
        let server = server(r#"{"url":"http://127.0.0.1:43505/mcp"}"#).unwrap();
        assert_eq!(OauthServer { name: "x".into(), ..server }.key(), "x|d23b6fb2274c705d");
    }

    #[test]
    fn a_token_variable_or_an_authorization_header_counts_as_authorization_even_if_unset() {
        for (table, expected) in [
            (r#"{"url":"http://x"}"#, false),
            (r#"{"url":"http://x","bearer_token_env_var":"UNSET"}"#, true),
            (r#"{"url":"http://x","http_headers":{"authorization":"Bearer a"}}"#, true),
            (r#"{"url":"http://x","env_http_headers":{"Authorization":"UNSET"}}"#, true),
            (r#"{"url":"http://x","http_headers":{"X-Key":"a"}}"#, false),
        ] {
            assert_eq!(server(table).unwrap().has_authorization, expected, "{table}");
        }
        assert!(server(r#"{"command":"x"}"#).is_none());
    }

    #[test]
    fn headers_come_from_the_table_and_the_environment() {
        let server = server(
            r#"{"url":"http://x","http_headers":{"X-A":"1","bad name":"2","X-B":"a\nb"},"env_http_headers":{"X-C":"SET","X-D":"UNSET"}}"#,
        );
        let headers = server.unwrap().headers;
        let mut found: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        found.sort();
        assert_eq!(found, [("x-a", "1"), ("x-c", "from env")]);
    }
}
