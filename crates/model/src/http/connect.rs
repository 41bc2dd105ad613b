//! Opens connections: directly or through a proxy, with TLS for `https` and `wss`.

use std::fs;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper::http::uri::Scheme;
use hyper::{Method, Request, Uri, Version};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use loomd_tls::{ClientCertificate, Roots, ServerName, TlsConnector, TlsError};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;

use super::{HttpError, Stream};

/// The limit for one connection, TLS and proxy handshakes included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long one address of a host is tried before the next one is tried in parallel.
const HEAD_START: Duration = Duration::from_millis(250);

pub(super) struct Connector {
    proxies: Option<Matcher>,
    /// The path of additional root certificates.
    ca_bundle: Option<String>,
    /// Certificates of these connections only.
    files: TlsFiles,
    tls: OnceCell<Result<TlsConnector, String>>,
}

/// Certificates, in PEM.
#[derive(Clone, Default)]
pub struct TlsFiles {
    /// Root certificates that are trusted in addition.
    pub roots: Option<Vec<u8>>,
    /// A certificate chain that identifies this client, and its private key.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

impl TlsFiles {
    fn client_certificate(&self) -> Result<Option<ClientCertificate>, TlsError> {
        self.client.as_ref().map(|(chain, key)| ClientCertificate::from_pem(chain, key)).transpose()
    }

    /// Fails when a certificate or a key cannot be used.
    pub(super) fn check(&self) -> Result<(), TlsError> {
        let mut roots = Roots::none();
        if let Some(pem) = &self.roots
            && roots.add_pem(pem)? == 0
        {
            return Err(TlsError::BadPem("no root certificate found".into()));
        }
        if let Some(client) = self.client_certificate()? {
            roots.connector_as(client)?;
        }
        Ok(())
    }
}

/// An open connection, and the proxy that it leads to.
pub(super) struct RawConnection {
    pub stream: Stream,
    /// Set for a proxy that forwards plain HTTP: requests then carry absolute URIs, and possibly credentials.
    pub proxy: Option<Intercept>,
}

impl Connector {
    pub fn new(env: &dyn Fn(&str) -> Option<String>, files: TlsFiles) -> Self {
        let ca_bundle = ["CODEX_CA_CERTIFICATE", "SSL_CERT_FILE"].into_iter().find_map(|name| non_blank(env, &[name]));
        Self { proxies: proxies(env), ca_bundle, files, tls: OnceCell::new() }
    }

    /// Connects to the host of `uri`. `tunnel` requires a `CONNECT` tunnel through a proxy even for plain text, for
    /// protocols other than HTTP.
    pub async fn connect(&self, uri: &Uri, tunnel: bool) -> Result<RawConnection, HttpError> {
        match tokio::time::timeout(CONNECT_TIMEOUT, self.open(uri, tunnel)).await {
            Ok(result) => result,
            Err(_) => Err(HttpError::Connect(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()))),
        }
    }

    async fn open(&self, uri: &Uri, tunnel: bool) -> Result<RawConnection, HttpError> {
        let secure = is_secure(uri);
        let (host, port) = (host(uri)?, uri.port_u16().unwrap_or(if secure { 443 } else { 80 }));
        let (tcp, proxy) = match self.proxy(uri, secure)? {
            None => (dial(host, port).await?, None),
            Some(proxy) => {
                let tcp = dial(self::host(proxy.uri())?, proxy.uri().port_u16().unwrap_or(80)).await?;
                if secure || tunnel { (open_tunnel(tcp, &proxy, host, port).await?, None) } else { (tcp, Some(proxy)) }
            }
        };
        if !secure {
            return Ok(RawConnection { stream: Stream::Plain(tcp), proxy });
        }
        let name = ServerName::try_from(host.to_owned()).map_err(unreachable)?;
        let stream = self.tls().await?.connect(name, tcp).await.map_err(|error| match error.kind() {
            // The certificate or the protocol version is not accepted, which a retry does not change.
            ErrorKind::InvalidData => unreachable(error),
            _ => failed(error),
        })?;
        Ok(RawConnection { stream: Stream::Tls(Box::new(stream)), proxy })
    }

    /// Returns the proxy for a URI. `ws` and `wss` use the proxies of `http` and `https`.
    fn proxy(&self, uri: &Uri, secure: bool) -> Result<Option<Intercept>, HttpError> {
        let Some(proxies) = &self.proxies else { return Ok(None) };
        let mut parts = uri.clone().into_parts();
        parts.scheme = Some(if secure { Scheme::HTTPS } else { Scheme::HTTP });
        let proxy = proxies.intercept(&Uri::from_parts(parts).map_err(failed)?);
        match proxy.as_ref().and_then(|proxy| proxy.uri().scheme_str()) {
            None | Some("http") => Ok(proxy),
            Some(other) => Err(HttpError::Unreachable(format!("unsupported proxy scheme `{other}`: expected `http`"))),
        }
    }

    /// Loads the root certificates on first use: it takes milliseconds that plain HTTP need not spend.
    async fn tls(&self) -> Result<&TlsConnector, HttpError> {
        let load = async || {
            let (ca_bundle, files) = (self.ca_bundle.clone(), self.files.clone());
            let loaded = tokio::task::spawn_blocking(move || {
                tls(ca_bundle.as_deref(), &files).map_err(|error| error.to_string())
            });
            loaded.await.unwrap_or_else(|error| Err(error.to_string()))
        };
        self.tls.get_or_init(load).await.as_ref().map_err(|error| HttpError::Unreachable(error.clone()))
    }
}

fn is_secure(uri: &Uri) -> bool {
    matches!(uri.scheme_str(), Some("https" | "wss"))
}

/// The host without the brackets of an IPv6 address.
fn host(uri: &Uri) -> Result<&str, HttpError> {
    let host = uri.host().ok_or_else(|| HttpError::Unreachable("the URL has no host".into()))?;
    Ok(host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host))
}

/// Tries the addresses of a host in order, starting the next one after [`HEAD_START`] or a failure.
async fn dial(host: &str, port: u16) -> Result<TcpStream, HttpError> {
    let unknown = |error: io::Error| HttpError::Unreachable(format!("no address for host `{host}`: {error}"));
    let mut addresses = tokio::net::lookup_host((host, port)).await.map_err(unknown)?;
    let mut dialling = FuturesUnordered::new();
    let mut error = HttpError::Unreachable(format!("no address for host `{host}`"));
    let tcp = loop {
        let more = addresses.next().map(|address| dialling.push(TcpStream::connect(address))).is_some();
        let head_start =
            async { if more { tokio::time::sleep(HEAD_START).await } else { std::future::pending().await } };
        tokio::select! {
            dialled = dialling.next() => match dialled {
                Some(Ok(tcp)) => break tcp,
                Some(Err(cause)) => error = match cause.kind() {
                    ErrorKind::ConnectionRefused => {
                        HttpError::Unreachable(format!("connection refused by {host}:{port}"))
                    }
                    _ => HttpError::Connect(format!("no connection to {host}:{port}: {cause}")),
                },
                None => return Err(error),
            },
            () = head_start => {}
        }
    };
    // A request is written in one piece, so Nagle's algorithm would only delay it.
    tcp.set_nodelay(true).map_err(failed)?;
    Ok(tcp)
}

/// Opens a `CONNECT` tunnel to the host through a proxy.
async fn open_tunnel(tcp: TcpStream, proxy: &Intercept, host: &str, port: u16) -> Result<TcpStream, HttpError> {
    let target = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = Method::CONNECT;
    *request.version_mut() = Version::HTTP_11;
    *request.uri_mut() = target.parse().map_err(failed)?;
    request.headers_mut().insert(HOST, HeaderValue::try_from(target).map_err(failed)?);
    if let Some(auth) = proxy.basic_auth() {
        request.headers_mut().insert(PROXY_AUTHORIZATION, auth.clone());
    }
    let (mut sender, connection) = http1::handshake(TokioIo::new(tcp)).await.map_err(failed)?;
    let mut connection = Box::pin(connection.with_upgrades());
    let mut answer = Box::pin(async {
        let response = sender.send_request(request).await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(HttpError::Connect(format!("the proxy answered {}", response.status())));
        }
        hyper::upgrade::on(response).await.map_err(failed)
    });
    let mut open = true;
    let upgraded = std::future::poll_fn(|cx| {
        if open {
            open = connection.as_mut().poll(cx).is_pending();
        }
        answer.as_mut().poll(cx)
    })
    .await?;
    let parts = upgraded
        .downcast::<TokioIo<TcpStream>>()
        .map_err(|_| HttpError::Connect("the proxy did not open a tunnel".into()))?;
    Ok(parts.io.into_inner())
}

/// Trusts the certificates of `ca_bundle` in addition to the built-in and system roots.
fn tls(ca_bundle: Option<&str>, files: &TlsFiles) -> Result<TlsConnector, Box<dyn std::error::Error>> {
    let mut roots = Roots::system();
    if let Some(path) = ca_bundle {
        let pem = fs::read(path).map_err(|error| format!("cannot read the certificates of {path}: {error}"))?;
        roots.add_pem(&pem).map_err(|error| format!("invalid certificates in {path}: {error}"))?;
    }
    if let Some(pem) = &files.roots {
        roots.add_pem(pem)?;
    }
    Ok(match files.client_certificate()? {
        Some(client) => roots.connector_as(client)?,
        None => roots.connector()?,
    })
}

fn proxies(env: &dyn Fn(&str) -> Option<String>) -> Option<Matcher> {
    let all = non_blank(env, &["ALL_PROXY", "all_proxy"]);
    let http = non_blank(env, &["HTTP_PROXY", "http_proxy"]);
    let https = non_blank(env, &["HTTPS_PROXY", "https_proxy"]);
    if all.is_none() && http.is_none() && https.is_none() {
        return None;
    }
    let no = non_blank(env, &["NO_PROXY", "no_proxy"]).unwrap_or_default();
    let matcher = Matcher::builder().all(all.unwrap_or_default()).no(no);
    Some(matcher.http(http.unwrap_or_default()).https(https.unwrap_or_default()).build())
}

fn non_blank(env: &dyn Fn(&str) -> Option<String>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| env(name).filter(|value| !value.trim().is_empty()))
}

fn failed(error: impl std::error::Error) -> HttpError {
    HttpError::Connect(error_chain(&error))
}

fn unreachable(error: impl std::error::Error) -> HttpError {
    HttpError::Unreachable(error_chain(&error))
}

/// Formats an error with its sources, which the `Display` of HTTP errors omits.
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
