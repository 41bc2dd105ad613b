//! Finding the authorization server of an MCP server: its metadata at well-known places of the server, or of the
//! authorization server that the server's resource metadata names.

use hyper::Uri;
use hyper::header::HeaderMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::authorization_server::{AuthorizationServer, DISCOVERY_TIMEOUT};
use crate::{OauthError, OauthServer};

const AUTHORIZATION_SERVER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";
const RESOURCE: &str = "/.well-known/oauth-protected-resource";

/// How many authorization servers of one resource are tried.
const MAX_ISSUERS: usize = 2;

/// What an authorization server says about itself.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Metadata {
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    #[serde(default)]
    pub registration_endpoint: Option<String>,
    #[serde(default)]
    pub scopes_supported: Option<Vec<String>>,
}

/// What an MCP server says about itself.
#[derive(Deserialize)]
struct ResourceMetadata {
    #[serde(default)]
    authorization_servers: Vec<String>,
}

impl AuthorizationServer {
    /// Returns the metadata of a server's authorization server; `None` if there is none. Fails if the server cannot be
    /// reached.
    pub async fn discover(&self, server: &OauthServer) -> Result<Option<Metadata>, OauthError> {
        let unreachable =
            || OauthError::Unreachable(format!("no answer from {} within {DISCOVERY_TIMEOUT:?}", server.url));
        let found = tokio::time::timeout(DISCOVERY_TIMEOUT * 3, self.search(server)).await;
        found.unwrap_or_else(|_| Err(unreachable()))
    }

    async fn search(&self, server: &OauthServer) -> Result<Option<Metadata>, OauthError> {
        let invalid = |_| OauthError::Unreachable(format!("invalid URL: {}", server.url));
        let url: Uri = server.url.parse().map_err(invalid)?;
        let (Some(origin), path) = (origin(&url), url.path().trim_matches('/')) else {
            return Err(OauthError::Unreachable(format!("the URL has no host: {}", server.url)));
        };
        for place in places(path) {
            if let Some(metadata) = self.metadata(&format!("{origin}{place}"), &server.headers).await? {
                return Ok(Some(metadata));
            }
        }
        for place in resource_places(path) {
            let found: Option<ResourceMetadata> = self.metadata(&format!("{origin}{place}"), &server.headers).await?;
            for issuer in found.iter().flat_map(|found| &found.authorization_servers).take(MAX_ISSUERS) {
                if let Some(metadata) = self.of_issuer(issuer, server).await {
                    return Ok(Some(metadata));
                }
            }
        }
        Ok(None)
    }

    /// The metadata of an authorization server that another server names. It gets no configured headers.
    async fn of_issuer(&self, issuer: &str, server: &OauthServer) -> Option<Metadata> {
        let url = acceptable(issuer, server)?;
        let (origin, path) = (origin(&url)?, url.path().trim_matches('/'));
        for place in places(path).into_iter().chain(openid_places(path)) {
            // Another server than the configured one: it is no error if it cannot be reached.
            match self.metadata(&format!("{origin}{place}"), &HeaderMap::new()).await {
                Ok(None) => {}
                found => return found.ok().flatten(),
            }
        }
        None
    }

    /// Returns the document at a URL; `None` if there is none of that kind.
    async fn metadata<T: DeserializeOwned>(&self, url: &str, headers: &HeaderMap) -> Result<Option<T>, OauthError> {
        let response = self.get(url, headers).await.map_err(OauthError::Unreachable)?;
        let found = response.status().is_success().then(|| serde_json::from_slice(response.body()).ok());
        Ok(found.flatten())
    }
}

/// Returns a URL that another server names, if it may be used: `https`, or `http` to this machine or where the MCP server
/// itself is reached by `http`. Anything else could carry tokens in clear text, or make a browser open a local file.
pub(crate) fn acceptable(url: &str, server: &OauthServer) -> Option<Uri> {
    let parsed: Uri = url.parse().ok()?;
    let host = parsed.host().filter(|host| !host.is_empty())?;
    let acceptable = match parsed.scheme_str()? {
        "https" => true,
        "http" => is_local(host) || server.url.to_ascii_lowercase().starts_with("http:"),
        _ => false,
    };
    acceptable.then_some(parsed)
}

/// Whether a host is this machine.
pub(crate) fn is_local(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// Scheme, host and port.
pub(crate) fn origin(url: &Uri) -> Option<String> {
    Some(format!("{}://{}", url.scheme_str()?, url.authority()?))
}

fn places(path: &str) -> Vec<String> {
    if path.is_empty() {
        return vec![AUTHORIZATION_SERVER.to_owned()];
    }
    vec![
        format!("{AUTHORIZATION_SERVER}/{path}"),
        format!("/{path}{AUTHORIZATION_SERVER}"),
        AUTHORIZATION_SERVER.to_owned(),
    ]
}

fn openid_places(path: &str) -> Vec<String> {
    if path.is_empty() {
        return vec![OPENID.to_owned()];
    }
    vec![format!("{OPENID}/{path}"), format!("/{path}{OPENID}")]
}

fn resource_places(path: &str) -> Vec<String> {
    if path.is_empty() {
        return vec![RESOURCE.to_owned()];
    }
    vec![format!("{RESOURCE}/{path}"), RESOURCE.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::server;

    #[test]
    fn metadata_is_looked_for_below_the_path_and_at_the_root() {
        let well_known = "/.well-known/oauth-authorization-server";
        assert_eq!(places(""), [well_known]);
        assert_eq!(places("a/b"), [&format!("{well_known}/a/b"), &format!("/a/b{well_known}"), well_known]);
    }

    #[test]
    fn endpoints_that_would_leak_tokens_or_open_files_are_not_acceptable() {
        for (configured, url, expected) in [
            ("https://mcp.example/mcp", "https://auth.example/token", true),
            ("https://mcp.example/mcp", "http://auth.example/token", false),
            ("https://mcp.example/mcp", "http://127.0.0.1:9/token", true),
            ("https://mcp.example/mcp", "http://localhost/token", true),
            ("https://mcp.example/mcp", "http://[::1]:9/token", true),
            ("http://mcp.example/mcp", "http://auth.example/token", true),
            ("https://mcp.example/mcp", "file:///etc/passwd", false),
            ("https://mcp.example/mcp", "javascript:alert(1)", false),
            ("https://mcp.example/mcp", "/relative", false),
            ("https://mcp.example/mcp", "https://", false),
            ("https://mcp.example/mcp", "", false),
        ] {
            assert_eq!(acceptable(url, &server(configured)).is_some(), expected, "{configured} {url}");
        }
    }
}
