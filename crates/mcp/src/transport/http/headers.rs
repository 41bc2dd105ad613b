//! Where an HTTP server is, and the headers of every request to it.

use std::sync::Arc;

use hyper::Uri;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use loomd_exec::Environment;

use super::WireError;
use crate::config::HttpServer;
use crate::credentials::{Credentials, CredentialsError};
use crate::error::StartError;

/// How a server is reached, with all variables looked up.
pub(crate) struct HttpOptions {
    pub name: String,
    pub uri: Uri,
    server: HttpServer,
    /// Headers of the configuration.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// `None` when the configuration authorizes requests itself.
    credentials: Option<Arc<dyn Credentials>>,
}

impl HttpOptions {
    pub fn new(
        name: &str,
        server: &HttpServer,
        environment: &Environment,
        user_agent: &str,
        credentials: Arc<dyn Credentials>,
    ) -> Result<Self, StartError> {
        let invalid = |what: &str| StartError::Settings(format!("invalid {what} for MCP server '{name}'"));
        let uri: Uri = server.url.parse().map_err(|_| invalid("url"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(invalid("url: expected http:// or https://"));
        }
        let mut headers = Vec::new();
        if let Ok(user_agent) = HeaderValue::try_from(user_agent) {
            headers.push((USER_AGENT, user_agent));
        }
        let fixed = server.headers.iter().map(|(name, value)| (name, value.reveal().to_owned()));
        let variables = server.env_headers.iter().filter_map(|(name, variable)| {
            let value = environment.get(variable).filter(|value| !value.trim().is_empty())?;
            Some((name, value.to_owned()))
        });
        for (header, value) in fixed.chain(variables) {
            let what = || invalid(&format!("header `{header}`"));
            let mut value = HeaderValue::try_from(value).map_err(|_| what())?;
            value.set_sensitive(true);
            headers.push((HeaderName::try_from(header).map_err(|_| what())?, value));
        }
        if let Some(variable) = &server.bearer_token_env_var {
            let problem = |what: &str| {
                StartError::Settings(format!("Environment variable {variable} for MCP server '{name}' is {what}"))
            };
            let token = environment.get(variable).ok_or_else(|| problem("not set"))?;
            if token.is_empty() {
                return Err(problem("empty"));
            }
            let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| problem("no valid token"))?;
            value.set_sensitive(true);
            headers.push((AUTHORIZATION, value));
        }
        let credentials = (!server.has_own_authorization()).then_some(credentials);
        Ok(Self { name: name.into(), uri, server: server.clone(), headers, credentials })
    }

    /// Adds the headers of the configuration and of the credentials.
    pub async fn add_headers(&self, headers: &mut HeaderMap) -> Result<(), WireError> {
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        if let Some(credentials) = &self.credentials {
            let more = credentials.authorize(&self.name, &self.server).await.map_err(|error| match error {
                CredentialsError::NotLoggedIn => WireError::NotLoggedIn,
                CredentialsError::Failed(reason) => WireError::Failed(reason),
            })?;
            for (name, mut value) in more {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        Ok(())
    }

    /// After a 401: whether other credentials are worth a try.
    pub async fn recover(&self) -> bool {
        match &self.credentials {
            Some(credentials) => credentials.recover(&self.name, &self.server).await,
            None => false,
        }
    }
}
