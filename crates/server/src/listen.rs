//! `--listen`: where clients connect.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

/// A transport endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenUrl {
    Stdio,
    Websocket(SocketAddr),
    /// A unix socket; without a path, the one in the home folder.
    Unix(Option<PathBuf>),
    /// The socket, TCP or unix, that a service manager passes to the process.
    Passed,
    /// No transport at all.
    Off,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum ListenUrlError {
    #[error("unsupported --listen URL `{0}`; expected `stdio://` or `ws://IP:PORT` (or `unix://PATH`, `fd://`, `off`)")]
    Unsupported(String),
    #[error("invalid websocket --listen URL `{0}`; expected `ws://IP:PORT`")]
    BadWebsocket(String),
    #[error("invalid unix --listen URL `{0}`; expected `unix://` and an absolute path")]
    BadUnix(String),
}

impl FromStr for ListenUrl {
    type Err = ListenUrlError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        if url == "stdio://" {
            return Ok(Self::Stdio);
        }
        if url == "fd://" {
            return Ok(Self::Passed);
        }
        if url == "off" {
            return Ok(Self::Off);
        }
        if let Some(address) = url.strip_prefix("ws://") {
            return address.parse().map(Self::Websocket).map_err(|_| ListenUrlError::BadWebsocket(url.into()));
        }
        match url.strip_prefix("unix://") {
            Some("") => Ok(Self::Unix(None)),
            Some(path) if path.starts_with('/') => Ok(Self::Unix(Some(path.into()))),
            Some(_) => Err(ListenUrlError::BadUnix(url.into())),
            None => Err(ListenUrlError::Unsupported(url.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_listen_url_is_refused_with_the_expected_form() {
        let parse = |url: &str| url.parse::<ListenUrl>().map_err(|error| error.to_string());
        assert_eq!(parse("stdio://"), Ok(ListenUrl::Stdio));
        assert_eq!(parse("fd://"), Ok(ListenUrl::Passed));
        assert_eq!(parse("off"), Ok(ListenUrl::Off));
        assert_eq!(parse("ws://127.0.0.1:0"), Ok(ListenUrl::Websocket(([127, 0, 0, 1], 0).into())));
        assert_eq!(parse("ws://[::1]:80"), Ok(ListenUrl::Websocket("[::1]:80".parse().unwrap())));
        assert_eq!(parse("unix://"), Ok(ListenUrl::Unix(None)));
        assert_eq!(parse("unix:///run/x"), Ok(ListenUrl::Unix(Some("/run/x".into()))));
        for url in ["ws://localhost:1", "ws://127.0.0.1", "ws://", "ws://127.0.0.1:70000", "ws://127.0.0.1:1/x"] {
            let expected = format!("invalid websocket --listen URL `{url}`; expected `ws://IP:PORT`");
            assert_eq!(parse(url), Err(expected));
        }
        for url in ["", "http://x:1", "STDIO://", "stdio://x", "fd://3"] {
            let error = parse(url).unwrap_err();
            let start = format!("unsupported --listen URL `{url}`; expected `stdio://` or `ws://IP:PORT`");
            assert!(error.starts_with(&start), "{error}");
        }
        assert!(parse("unix://relative").unwrap_err().contains("absolute path"));
    }
}
