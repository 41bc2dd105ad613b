//! The tokens as the client of MCP servers uses them.

use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use loomd_mcp::{BoxFuture, Credentials, CredentialsError, HttpServer};
use loomd_protocol::McpAuthStatus;

use crate::{McpOauth, OauthError, OauthServer};

impl Credentials for McpOauth {
    fn authorize<'a>(
        &'a self,
        name: &'a str,
        server: &'a HttpServer,
    ) -> BoxFuture<'a, Result<Vec<(HeaderName, HeaderValue)>, CredentialsError>> {
        Box::pin(async move {
            let token = match self.bearer(&self.server(name, server)).await {
                Ok(Some(token)) => token,
                Ok(None) => return Ok(Vec::new()),
                Err(error @ OauthError::Refused(_)) => {
                    tracing::warn!(server = name, %error, "a login to an MCP server has ended");
                    return Err(CredentialsError::NotLoggedIn);
                }
                Err(error) => return Err(CredentialsError::Failed(error.to_string())),
            };
            let unusable = |_| CredentialsError::Failed("the stored token cannot be sent in a header".into());
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.reveal())).map_err(unusable)?;
            value.set_sensitive(true);
            Ok(vec![(AUTHORIZATION, value)])
        })
    }

    fn recover<'a>(&'a self, name: &'a str, server: &'a HttpServer) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.recover(&self.server(name, server)).await })
    }

    fn status<'a>(&'a self, name: &'a str, server: &'a HttpServer) -> BoxFuture<'a, McpAuthStatus> {
        Box::pin(async move { self.status(&self.server(name, server)).await })
    }
}

impl McpOauth {
    /// A server as this process reaches it.
    pub fn server(&self, name: &str, server: &HttpServer) -> OauthServer {
        OauthServer::new(name, server, &self.0.env)
    }
}

#[cfg(test)]
mod tests {
    use loomd_mcp::{Authorization, Endpoint, ServerConfig};
    use serde_json::json;

    use super::*;
    use crate::tests::{Fixture, Issuer};

    fn http(url: &str) -> HttpServer {
        let config = serde_json::from_value(json!({ "url": url })).unwrap();
        let Endpoint::Http(server) = ServerConfig::new("x", &config).endpoint else { panic!() };
        assert_eq!(server.authorization, Authorization::OAuth);
        server
    }

    #[tokio::test]
    async fn requests_get_the_token_and_a_refused_login_counts_as_none() {
        let (fixture, issuer) = (Fixture::new(), Issuer::start().await);
        let server = http(&format!("{}/mcp", issuer.base));
        let credentials: &dyn Credentials = &fixture.oauth;
        assert_eq!(credentials.authorize("x", &server).await, Ok(Vec::new()));
        assert_eq!(credentials.status("x", &server).await, McpAuthStatus::NotLoggedIn);
        let oauth = fixture.oauth.server("x", &server);
        fixture.store(&oauth, json!({}));
        let headers = credentials.authorize("x", &server).await.unwrap();
        assert_eq!(headers, [(AUTHORIZATION, HeaderValue::from_static("Bearer token-0"))]);
        assert!(headers[0].1.is_sensitive());
        assert!(credentials.recover("x", &server).await);
        fixture.store(&oauth, json!({ "expires_at": 1000, "refresh_token": "spent" }));
        issuer.set("POST /token", 400, json!({ "error": "invalid_grant" }));
        assert_eq!(credentials.authorize("x", &server).await, Err(CredentialsError::NotLoggedIn));
        fixture.store(&oauth, json!({ "access_token": "a\nb" }));
        let unusable = CredentialsError::Failed("the stored token cannot be sent in a header".into());
        assert_eq!(credentials.authorize("x", &server).await, Err(unusable));
    }
}
