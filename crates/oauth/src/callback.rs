//! The local HTTP server that a browser is redirected to at the end of a login. Everything of it is bounded: connections,
//! the time to read a request and the time to answer it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// What a browser is shown.
pub type Page = Response<Full<Bytes>>;

/// A browser opens only a few.
const MAX_CONNECTIONS: usize = 16;
/// The limit for reading a request head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// The limit for a whole request, which may wait for requests to the issuer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(90);
/// How long open requests may take after the login has ended.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);
/// The delay before accepting again after an error.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Serves requests with `answer` until `stop` is cancelled, and then for a moment those that are open. Dropping the future
/// closes all connections.
pub async fn serve<A, F>(listener: &TcpListener, stop: &CancellationToken, answer: A)
where
    A: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Page> + Send + 'static,
{
    let answer = Arc::new(answer);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => _ = connections.spawn(connection(stream, Arc::clone(&answer))),
                Err(_) => sleep(ACCEPT_RETRY_DELAY).await,
            },
        }
    }
    _ = timeout(SHUTDOWN_GRACE, async { while connections.join_next().await.is_some() {} }).await;
}

async fn connection<A, F>(stream: TcpStream, answer: Arc<A>)
where
    A: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Page> + Send + 'static,
{
    let service = service_fn(|request| {
        let answered = answer(request);
        async move { Ok::<_, Infallible>(answered.await) }
    });
    let mut server = http1::Builder::new();
    server.keep_alive(false).timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    // Connection errors are ignored: there is no client left to report them to.
    _ = timeout(REQUEST_TIMEOUT, server.serve_connection(TokioIo::new(stream), service)).await;
}

/// A page of plain text.
pub fn plain(status: StatusCode, text: &str) -> Page {
    page(status, "text/plain; charset=utf-8", text.to_owned())
}

/// A page of HTML.
pub fn html(text: String) -> Page {
    page(StatusCode::OK, "text/html; charset=utf-8", text)
}

fn page(status: StatusCode, content_type: &'static str, body: String) -> Page {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn an_open_request_is_answered_after_the_login_has_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let ended = stop.clone();
        let served = serve(&listener, &stop, move |request| {
            ended.cancel();
            let path = request.uri().path().to_owned();
            async move { plain(StatusCode::BAD_REQUEST, &path) }
        });
        let client = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /there?a HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            text
        };
        let ((), text) = tokio::join!(served, client);
        assert!(text.starts_with("HTTP/1.1 400 Bad Request\r\n") && text.ends_with("\r\n\r\n/there"), "{text}");
    }
}
