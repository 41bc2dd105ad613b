//! [`Connection`]: the server that a turn runs in: one in this process, or a running one.

use std::env;
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use loomd_client::{Client, Endpoint, Events, Options, Websocket};

use super::model_access::{setup_for_thread, setup_with_model};
use super::open::{ThreadChoice, ThreadRequest};
use super::providers::{Named, Providers};
use crate::cli::{Overrides, UsageError};
use crate::config;
use crate::setup::{Setup, home};

pub enum Connection {
    /// A server in this process.
    Own(Box<Setup>, Providers),
    /// A running server, which has a configuration of its own.
    Attached(Endpoint),
}

impl Connection {
    /// A server in this process with a usable provider for the request.
    pub fn own(overrides: Overrides, request: &mut ThreadRequest) -> Result<Self> {
        let setup = match request.choice {
            ThreadChoice::New { .. } => setup_with_model(overrides, request.provider.as_deref(), &request.cwd)?,
            ThreadChoice::Resume(_) | ThreadChoice::Fork(_) => {
                let named = Named::new(&Setup::new(&overrides)?);
                request.model = request.model.take().or(named.model);
                request.provider = request.provider.take().or(named.provider);
                setup_for_thread(overrides, &request.cwd)?
            }
        };
        config::print_warnings(&setup.start.loaded);
        let providers = Providers::new(&setup, &request.cwd);
        Ok(Self::Own(Box::new(setup), providers))
    }

    /// A running server. Overrides become those of the thread.
    pub fn attached(
        url: &str,
        token_variable: Option<&str>,
        overrides: &Overrides,
        request: &mut ThreadRequest,
    ) -> Result<Self> {
        let flags = Setup::flags(overrides)?.to_json();
        let text = |key: &str| flags.get(key).and_then(|value| value.as_str()).map(str::to_owned);
        request.model = request.model.take().or_else(|| text("model"));
        request.provider = request.provider.take().or_else(|| text("model_provider"));
        request.config = (!flags.is_empty()).then_some(flags);
        let token = token_variable.map(token).transpose()?;
        endpoint(url, token).map(Self::Attached)
    }

    pub async fn open(self, options: Options) -> Result<(Client, Events, Option<Providers>)> {
        let (client, events, providers) = match self {
            Self::Own(setup, providers) => {
                let (client, events) = setup.connect(options).await?;
                (client, events, Some(providers))
            }
            Self::Attached(endpoint) => {
                let (client, events) = Client::open(endpoint, options).await?;
                (client, events, None)
            }
        };
        Ok((client, events, providers))
    }
}

fn token(variable: &str) -> Result<String> {
    let token = env::var(variable).ok().filter(|token| !token.trim().is_empty());
    token
        .map(|token| token.trim().to_owned())
        .ok_or_else(|| anyhow!("--attach-token-env: there is no token in the environment variable {variable}"))
}

fn endpoint(url: &str, token: Option<String>) -> Result<Endpoint> {
    let refuse = |expected: &str| UsageError::new(format!("--attach {url}: expected {expected}"));
    if url.starts_with("ws://") || url.starts_with("wss://") {
        let websocket = Websocket::new(url);
        return Ok(match token {
            Some(token) => websocket.bearer(token),
            None => websocket,
        }
        .into());
    }
    match url.strip_prefix("unix://") {
        _ if token.is_some() => Err(UsageError::new("--attach-token-env: only websocket URLs take a token")),
        Some("") => Ok(Endpoint::unix(home()?.join(loomd_server::CONTROL_SOCKET))),
        Some(path) if path.starts_with('/') => Ok(Endpoint::unix(PathBuf::from(path))),
        Some(_) => Err(refuse("an absolute path after `unix://`")),
        None => Err(refuse("`ws://HOST:PORT`, `wss://HOST:PORT` or `unix://PATH`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_address_is_refused_with_the_expected_form() {
        let check = |url: &str, token: Option<&str>| {
            endpoint(url, token.map(str::to_owned)).map(|endpoint| endpoint.to_string()).map_err(|e| e.to_string())
        };
        assert_eq!(check("ws://localhost:4500", None), Ok("ws://localhost:4500".into()));
        assert_eq!(check("wss://host:1", Some("t")), Ok("wss://host:1".into()));
        assert_eq!(check("unix:///run/x", None), Ok("unix:///run/x".into()));
        for (url, expected) in [
            ("unix://x", "--attach unix://x: expected an absolute path after `unix://`"),
            ("localhost:1", "--attach localhost:1: expected `ws://HOST:PORT`, `wss://HOST:PORT` or `unix://PATH`"),
        ] {
            assert_eq!(check(url, None), Err(expected.into()));
        }
        let refused = check("unix:///run/x", Some("t"));
        assert_eq!(refused, Err("--attach-token-env: only websocket URLs take a token".into()));
    }
}
