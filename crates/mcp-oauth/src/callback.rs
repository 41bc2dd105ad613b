//! Where the browser is redirected to, and what it may deliver there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName};
use hyper::{Method, Request, StatusCode, Uri};
use loomd_config::ConfigToml;
use loomd_oauth::callback::{Page, plain};
use loomd_oauth::field;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use crate::OauthError;
use crate::discovery::is_local;

const DEFAULT_PATH: &str = "/callback";
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// `mcp_oauth_callback_port` and `mcp_oauth_callback_url`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallbackSettings {
    /// The local port; any free one if not given.
    pub port: Option<u16>,
    /// The URL that the browser is redirected to, which leads to the local port.
    pub url: Option<String>,
}

impl CallbackSettings {
    pub fn new(config: &ConfigToml) -> Self {
        Self { port: config.mcp_oauth_callback_port, url: config.mcp_oauth_callback_url.clone() }
    }

    /// Opens the local port.
    pub(crate) async fn listen(&self) -> Result<Listener, OauthError> {
        if self.port == Some(0) {
            return Err(OauthError::CallbackPort);
        }
        let Some(url) = &self.url else {
            let listener = bind(Ipv4Addr::LOCALHOST.into(), self.port).await?;
            let port = listener.local_addr().map_err(|error| cannot_listen("127.0.0.1", error))?.port();
            let redirect_uri = format!("http://127.0.0.1:{port}{DEFAULT_PATH}");
            return Ok(Listener { listener, redirect_uri, path: DEFAULT_PATH.to_owned() });
        };
        let invalid = || OauthError::CallbackUrl(url.clone());
        let parsed: Uri = url.parse().map_err(|_| invalid())?;
        let host = parsed.host().filter(|host| !host.is_empty()).ok_or_else(invalid)?;
        if !matches!(parsed.scheme_str(), Some("http" | "https")) {
            return Err(invalid());
        }
        // A host that is not local reaches this machine through something else, on a port that only the setting knows.
        let (address, port) = match host {
            "[::1]" => (Ipv6Addr::LOCALHOST.into(), self.port.or(parsed.port_u16())),
            host if is_local(host) => (Ipv4Addr::LOCALHOST.into(), self.port.or(parsed.port_u16())),
            _ => (Ipv4Addr::UNSPECIFIED.into(), self.port),
        };
        let listener = bind(address, port).await?;
        Ok(Listener { listener, redirect_uri: url.clone(), path: parsed.path().to_owned() })
    }
}

async fn bind(address: IpAddr, port: Option<u16>) -> Result<TcpListener, OauthError> {
    let port = port.unwrap_or(0);
    TcpListener::bind((address, port)).await.map_err(|error| cannot_listen(&format!("{address}:{port}"), error))
}

fn cannot_listen(address: &str, error: std::io::Error) -> OauthError {
    OauthError::Listen { address: address.to_owned(), error }
}

/// The open port of one login.
pub(crate) struct Listener {
    pub listener: TcpListener,
    pub redirect_uri: String,
    pub path: String,
}

/// What a browser delivered, and where its page goes.
pub(crate) struct Delivery {
    pub result: Result<Code, OauthError>,
    pub page: oneshot::Sender<Page>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Code {
    pub code: String,
    pub state: String,
}

/// Passes on what a request delivers, once, and returns the page that the login answers with. Other requests do not affect
/// the login.
pub(crate) async fn answer(request: Request<Incoming>, path: String, deliveries: mpsc::Sender<Delivery>) -> Page {
    let query = request.uri().query().unwrap_or_default();
    let is_callback = request.method() == Method::GET && request.uri().path() == path;
    let delivered = if is_callback && is_navigation(request.headers()) { parse(query) } else { None };
    let Some(result) = delivered else { return plain(StatusCode::BAD_REQUEST, "Invalid OAuth callback") };
    let (page, shown) = oneshot::channel();
    if deliveries.try_send(Delivery { result, page }).is_err() {
        return plain(StatusCode::BAD_REQUEST, "This login has already ended or is in progress");
    }
    shown.await.unwrap_or_else(|_| plain(StatusCode::GONE, "This login has ended"))
}

/// Whether a browser goes to the page itself. A page that only embeds or fetches the URL cannot deliver anything.
fn is_navigation(headers: &HeaderMap) -> bool {
    headers.get(SEC_FETCH_MODE).is_none_or(|mode| mode == "navigate")
}

/// Returns what a query delivers; `None` if it is not one of a callback.
fn parse(query: &str) -> Option<Result<Code, OauthError>> {
    if let Some(error) = field(query, "error") {
        let description = field(query, "error_description").filter(|text| !text.trim().is_empty());
        return Some(Err(OauthError::Provider { error, description }));
    }
    Some(Ok(Code { code: field(query, "code").filter(|code| !code.is_empty())?, state: field(query, "state")? }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(query: &str) -> Option<Result<Code, String>> {
        parse(query).map(|parsed| parsed.map_err(|error| error.to_string()))
    }

    #[test]
    fn a_callback_delivers_a_code_with_its_state_or_an_error() {
        assert_eq!(shown("code=a%20b&state=c"), Some(Ok(Code { code: "a b".into(), state: "c".into() })));
        for query in ["", "code=a", "state=c", "code=&state=c", "x=y"] {
            assert_eq!(shown(query), None, "{query}");
        }
        let denied = |text: &str| Some(Err(format!("OAuth provider returned `access_denied`{text}")));
        assert_eq!(shown("error=access_denied&error_description=a+b%20c"), denied(": a b c"));
        assert_eq!(shown("error=access_denied&error_description=&code=1&state=2"), denied(""));
    }

    #[tokio::test]
    async fn the_redirect_uri_follows_the_settings() {
        let listen = async |port, url: Option<&str>| {
            let settings = CallbackSettings { port, url: url.map(str::to_owned) };
            let listener = settings.listen().await.map_err(|error| error.to_string())?;
            Ok::<_, String>((listener.redirect_uri, listener.path, listener.listener.local_addr().unwrap()))
        };
        let (uri, path, address) = listen(None, None).await.unwrap();
        assert_eq!((uri, path.as_str()), (format!("http://{address}/callback"), "/callback"));
        let free = address.port();
        let (uri, _, address) = listen(Some(free), None).await.unwrap();
        assert_eq!((uri, address.port()), (format!("http://127.0.0.1:{free}/callback"), free));
        let local = format!("http://localhost:{free}/cb/x");
        let (uri, path, address) = listen(None, Some(&local)).await.unwrap();
        assert_eq!((uri, path.as_str(), address.to_string()), (local, "/cb/x", format!("127.0.0.1:{free}")));
        let (uri, path, address) = listen(Some(free), Some("https://dev.example/cb?z=1")).await.unwrap();
        assert_eq!((uri.as_str(), path.as_str()), ("https://dev.example/cb?z=1", "/cb"));
        assert_eq!(address.to_string(), format!("0.0.0.0:{free}"));
        assert_eq!(
            listen(Some(0), None).await.unwrap_err(),
            "invalid MCP OAuth callback port `0`: port must be between 1 and 65535"
        );
        for url in ["not a url", "ftp://x/y", "/callback", ""] {
            let error = listen(None, Some(url)).await.unwrap_err();
            assert_eq!(error, format!("invalid MCP OAuth callback URL `{url}`"));
        }
    }

    #[tokio::test]
    async fn a_port_that_is_in_use_is_named() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = taken.local_addr().unwrap().port();
        let settings = CallbackSettings { port: Some(port), url: None };
        let error = settings.listen().await.err().unwrap().to_string();
        assert!(error.starts_with(&format!("cannot listen for the OAuth callback on 127.0.0.1:{port}: ")), "{error}");
    }

    proptest! {
        #[test]
        fn any_query_is_read_without_a_panic(query in ".*") {
            parse(&query);
        }
    }
}
