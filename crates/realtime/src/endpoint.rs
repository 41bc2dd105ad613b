//! The URL of a session, made from the URL of a provider or of the configuration.

use hyper::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::Version;

/// Characters that a value of a query keeps.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Where a session connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint<'a> {
    /// An `http`, `https`, `ws` or `wss` URL.
    pub base_url: &'a str,
    pub version: Version,
    pub model: Option<&'a str>,
    /// Further parameters, as they stand in the URL, with or without the leading `?`.
    pub query: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointError(String);

impl std::fmt::Display for EndpointError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "invalid realtime URL `{}`: expected an http, https, ws or wss URL with a host", self.0)
    }
}

impl std::error::Error for EndpointError {}

impl Endpoint<'_> {
    /// Returns the URL of the websocket. A base without a path, or one that ends in `/v1`, gets the usual path.
    pub fn url(&self) -> Result<String, EndpointError> {
        let invalid = || EndpointError(self.base_url.split('?').next().unwrap_or_default().to_owned());
        let uri: Uri = self.base_url.trim().parse().map_err(|_| invalid())?;
        let scheme = match uri.scheme_str() {
            Some("http" | "ws") => "ws",
            Some("https" | "wss") => "wss",
            _ => return Err(invalid()),
        };
        let authority = uri.authority().filter(|authority| !authority.host().is_empty()).ok_or_else(invalid)?;
        let path = uri.path().trim_end_matches('/');
        let path = match path {
            "" => "/v1/realtime".to_owned(),
            _ if path.ends_with("/v1") => format!("{path}/realtime"),
            _ => path.to_owned(),
        };
        let mut query: Vec<String> = Vec::new();
        query.extend(uri.query().filter(|query| !query.is_empty()).map(Into::into));
        if self.version == Version::V1 {
            query.push("intent=quicksilver".into());
        }
        query.extend(self.model.map(|model| format!("model={}", utf8_percent_encode(model, QUERY))));
        let more = self.query.trim_start_matches('?');
        query.extend((!more.is_empty()).then(|| more.to_owned()));
        let separator = if query.is_empty() { "" } else { "?" };
        Ok(format!("{scheme}://{authority}{path}{separator}{}", query.join("&")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(base_url: &str, version: Version, model: Option<&str>, query: &str) -> String {
        Endpoint { base_url, version, model, query }.url().unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn the_usual_path_is_added_to_a_bare_host_and_to_v1() {
        for (base, expected) in [
            ("http://h:1", "ws://h:1/v1/realtime?intent=quicksilver"),
            ("https://h/", "wss://h/v1/realtime?intent=quicksilver"),
            ("https://h/v1", "wss://h/v1/realtime?intent=quicksilver"),
            ("https://h/x/v1/", "wss://h/x/v1/realtime?intent=quicksilver"),
            ("wss://h/v1/realtime/", "wss://h/v1/realtime?intent=quicksilver"),
            ("ws://h/own", "ws://h/own?intent=quicksilver"),
            ("ws://h/x/v1?a=b", "ws://h/x/v1/realtime?a=b&intent=quicksilver"),
        ] {
            assert_eq!(url(base, Version::V1, None, ""), expected);
        }
    }

    #[test]
    fn the_model_and_the_parameters_of_the_provider_are_part_of_the_query() {
        assert_eq!(url("http://h", Version::V2, None, ""), "ws://h/v1/realtime");
        assert_eq!(url("http://h", Version::V2, Some("m 1&x"), ""), "ws://h/v1/realtime?model=m%201%26x");
        let whole = url("http://h?c=d", Version::V1, Some("m"), "?api-version=1");
        assert_eq!(whole, "ws://h/v1/realtime?c=d&intent=quicksilver&model=m&api-version=1");
    }

    #[test]
    fn a_base_that_is_no_url_is_refused_without_its_query() {
        for base in ["nonsense", "ftp://h", "http://", "", "/v1", "ftp://h?key=secret"] {
            let error = url(base, Version::V1, None, "");
            assert!(error.starts_with("invalid realtime URL"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
