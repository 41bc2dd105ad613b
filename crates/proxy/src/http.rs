//! The HTTP proxy: requests for `http:` URLs are forwarded one by one, everything else goes through a `CONNECT` tunnel.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;

use crate::gate::{BlockReason, ConnectError, Protocol, Request};
use crate::host::Host;
use crate::serve::ClientConnection;

/// How long a client may take for the head of a request.
const HEAD: Duration = Duration::from_secs(30);
/// The largest head of a request.
const HEAD_BYTES: usize = 64 * 1024;

/// Hop-by-hop headers, which are not forwarded.
const OWN: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

type ResponseBody = Either<Full<Bytes>, Incoming>;

pub(crate) async fn serve(stream: TcpStream, line: ClientConnection) {
    let service = service_fn(move |request| {
        let line = line.clone();
        async move { Ok::<_, Infallible>(answer(&line, request).await) }
    });
    let server = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    // An error of the client's connection only ends that connection.
    let _ = server.with_upgrades().await;
}

async fn answer(line: &ClientConnection, request: hyper::Request<Incoming>) -> Response<ResponseBody> {
    if request.method() == Method::CONNECT {
        return tunnel(line, request).await;
    }
    let Some(wanted) = wanted(request.uri(), request.method(), Protocol::Http, Some(80)) else {
        return plain(StatusCode::BAD_REQUEST, "a proxy needs the whole address of what is asked for");
    };
    if request.uri().scheme_str() != Some("http") {
        return plain(StatusCode::BAD_REQUEST, "only `http` is passed on; use CONNECT for the rest");
    }
    match line.open(&wanted).await {
        Ok(stream) => pass_on(line, &wanted, stream, request).await.unwrap_or_else(|_| unreachable()),
        Err(ConnectError::Blocked(why)) => blocked(&wanted, why),
        Err(ConnectError::Unreachable(_)) => unreachable(),
    }
}

fn wanted(uri: &Uri, method: &Method, protocol: Protocol, default_port: Option<u16>) -> Option<Request> {
    let host = Host::parse(uri.host()?).ok()?;
    let port = uri.port_u16().or(default_port)?;
    Some(Request { protocol, host, port, method: Some(method.as_str().to_owned()) })
}

async fn tunnel(line: &ClientConnection, request: hyper::Request<Incoming>) -> Response<ResponseBody> {
    let Some(wanted) = wanted(request.uri(), request.method(), Protocol::Https, None) else {
        return plain(StatusCode::BAD_REQUEST, "CONNECT needs a host and a port");
    };
    let mut upstream = match line.open(&wanted).await {
        Ok(stream) => stream,
        Err(ConnectError::Blocked(why)) => {
            let mut response = plain(StatusCode::FORBIDDEN, message(why));
            response.headers_mut().insert(PROXY_ERROR, HeaderValue::from_static(code(why)));
            return response;
        }
        Err(ConnectError::Unreachable(_)) => return unreachable(),
    };
    line.spawn(async move {
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            let _ = copy_bidirectional(&mut TokioIo::new(upgraded), &mut upstream).await;
        }
    });
    Response::new(Either::Left(Full::default()))
}

/// Forwards a request, and streams its response back.
async fn pass_on(
    line: &ClientConnection,
    wanted: &Request,
    stream: TcpStream,
    request: hyper::Request<Incoming>,
) -> hyper::Result<Response<ResponseBody>> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    line.spawn(async move {
        let _ = connection.await;
    });
    let (mut parts, body) = request.into_parts();
    remove_own(&mut parts.headers);
    let host = if wanted.port == 80 { wanted.host.to_string() } else { wanted.host.with_port(wanted.port) };
    if let Ok(host) = HeaderValue::from_str(&host) {
        parts.headers.insert(HOST, host);
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    parts.uri = path.parse().unwrap_or_default();
    let mut response = sender.send_request(hyper::Request::from_parts(parts, body)).await?;
    remove_own(response.headers_mut());
    Ok(response.map(Either::Right))
}

fn remove_own(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(',').filter_map(|name| name.trim().parse().ok()))
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in OWN {
        headers.remove(*name);
    }
}

const PROXY_ERROR: &str = "x-proxy-error";

fn code(why: BlockReason) -> &'static str {
    match why {
        BlockReason::Denied => "blocked-by-denylist",
        BlockReason::NotAllowed | BlockReason::Local => "blocked-by-allowlist",
        BlockReason::Method => "blocked-by-method-policy",
        BlockReason::Tunnel => "blocked-by-mitm-required",
    }
}

fn reason(why: BlockReason) -> &'static str {
    match why {
        BlockReason::Denied => "denied",
        BlockReason::NotAllowed => "not_allowed",
        BlockReason::Local => "not_allowed_local",
        BlockReason::Method => "method_not_allowed",
        BlockReason::Tunnel => "mitm_required",
    }
}

fn source(why: BlockReason) -> &'static str {
    match why {
        BlockReason::Denied | BlockReason::Local => "baseline_policy",
        BlockReason::NotAllowed => "decider",
        BlockReason::Method | BlockReason::Tunnel => "mode_guard",
    }
}

fn message(why: BlockReason) -> &'static str {
    match why {
        BlockReason::Denied => "This request was blocked: the domain is denied by policy.",
        BlockReason::NotAllowed => "This request was blocked: the domain is not in the allowlist.",
        BlockReason::Local => "This request was blocked: local and private addresses are not allowed.",
        BlockReason::Method => "This request was blocked: in limited mode only GET, HEAD and OPTIONS are allowed.",
        BlockReason::Tunnel => "This request was blocked: in limited mode there are no tunnels, and so no HTTPS.",
    }
}

fn blocked(wanted: &Request, why: BlockReason) -> Response<ResponseBody> {
    let text = serde_json::json!({
        "status": "blocked",
        "host": wanted.host.as_str(),
        "reason": reason(why),
        "decision": "deny",
        "source": source(why),
        "protocol": wanted.protocol.name(),
        "port": wanted.port,
        "message": message(why),
    });
    let mut response = answer_with(StatusCode::FORBIDDEN, "application/json", text.to_string().into());
    response.headers_mut().insert(PROXY_ERROR, HeaderValue::from_static(code(why)));
    response
}

fn unreachable() -> Response<ResponseBody> {
    plain(StatusCode::BAD_GATEWAY, "the host cannot be reached")
}

fn plain(status: StatusCode, text: &'static str) -> Response<ResponseBody> {
    answer_with(status, "text/plain", Bytes::from_static(text.as_bytes()))
}

fn answer_with(status: StatusCode, kind: &'static str, body: Bytes) -> Response<ResponseBody> {
    let mut response = Response::new(Either::Left(Full::new(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
