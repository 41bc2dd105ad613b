//! The origins under which the page is served. Requests for any other `Host`, and requests of pages of any other
//! `Origin`, are refused: a page elsewhere cannot reach the server, also not through a name that resolves to it.

use std::fmt;
use std::str::FromStr;

use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use thiserror::Error;

/// A scheme, a host and a port, as browsers send them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    secure: bool,
    /// With the port, unless it is the scheme's own; in lower case.
    host: String,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("invalid origin `{0}`: expected `https://HOST` or `http://HOST:PORT` without a path")]
pub struct OriginError(String);

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        let error = || OriginError(text.to_owned());
        let (secure, host) = match text.split_once("://") {
            Some(("https", host)) => (true, host),
            Some(("http", host)) => (false, host),
            _ => return Err(error()),
        };
        let valid = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte);
        if host.is_empty() || !host.bytes().all(valid) {
            return Err(error());
        }
        let default = if secure { ":443" } else { ":80" };
        Ok(Self { secure, host: host.strip_suffix(default).unwrap_or(host).to_ascii_lowercase() })
    }
}

/// All origins of one listener.
#[derive(Clone, Debug)]
pub(crate) struct Origins(Vec<Origin>);

impl Origins {
    /// The loopback's names with the port, and further ones.
    pub fn new(port: u16, further: Vec<Origin>) -> Self {
        let loopback = ["127.0.0.1", "localhost", "[::1]"];
        let mut all: Vec<Origin> = loopback
            .map(|name| if port == 80 { name.to_owned() } else { format!("{name}:{port}") })
            .map(|host| Origin { secure: false, host })
            .into();
        all.extend(further);
        Self(all)
    }

    /// Returns the origin of a request; `None` if its `Host` is another, or a page of another origin sent it.
    pub fn of(&self, headers: &HeaderMap) -> Option<&Origin> {
        let host = single(headers, &HOST)?.to_ascii_lowercase();
        let mut of_host = self.0.iter().filter(|origin| origin.host == host);
        if !headers.contains_key(ORIGIN) {
            return of_host.next();
        }
        let sent: Origin = single(headers, &ORIGIN)?.parse().ok()?;
        of_host.find(|origin| **origin == sent)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.secure { "https" } else { "http" }, self.host)
    }
}

impl Origin {
    /// Whether browsers reach it through TLS.
    pub fn is_secure(&self) -> bool {
        self.secure
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &str, origin: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_request_with_a_foreign_host_or_origin_is_refused() {
        let origins = Origins::new(4000, vec!["https://agents.example".parse().unwrap()]);
        let accepted = |host, origin| origins.of(&headers(host, origin)).is_some();
        assert!(accepted("127.0.0.1:4000", None));
        assert!(accepted("localhost:4000", Some("http://localhost:4000")));
        assert!(accepted("agents.example", Some("https://agents.example")));
        for (host, origin) in [
            ("evil.example:4000", None),
            ("127.0.0.1:4001", None),
            ("127.0.0.1", None),
            ("127.0.0.1:4000", Some("http://evil.example")),
            ("127.0.0.1:4000", Some("http://127.0.0.1:4001")),
            ("127.0.0.1:4000", Some("https://127.0.0.1:4000")),
            ("127.0.0.1:4000", Some("null")),
            ("agents.example", Some("http://agents.example")),
        ] {
            assert!(!accepted(host, origin), "{host} {origin:?}");
        }
    }

    #[test]
    fn an_origin_with_a_path_is_refused() {
        for text in ["agents.example", "ftp://a", "https://", "https://a/b", "https://a b"] {
            assert_eq!(text.parse::<Origin>(), Err(OriginError(text.to_owned())));
        }
        assert_eq!("HTTPS://a".parse::<Origin>(), Err(OriginError("HTTPS://a".into())));
        assert_eq!("https://A:443".parse::<Origin>().unwrap(), "https://a".parse().unwrap());
    }
}
