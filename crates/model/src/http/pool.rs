//! Connections, and the pool that keeps idle ones between requests.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;

use super::connect::{RawConnection, error_chain};
use super::{Http, HttpError, HttpResponse, Stream};

/// Servers close connections that are idle for about a minute.
const MAX_IDLE_TIME: Duration = Duration::from_secs(60);
/// Each costs a file descriptor, and more calls than this rarely end at once.
const MAX_IDLE_CONNECTIONS: usize = 16;

type Driver = http1::Connection<TokioIo<Stream>, Full<Bytes>>;

/// An open connection to one origin. Makes progress only while it is polled.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: Pin<Box<Driver>>,
    closed: bool,
    origin: Arc<str>,
    proxy: Option<Intercept>,
}

impl Connection {
    pub async fn open(opened: RawConnection, origin: Arc<str>) -> Result<Self, HttpError> {
        let (sender, driver) = http1::handshake(TokioIo::new(opened.stream)).await.map_err(broken)?;
        Ok(Self { sender, driver: Box::pin(driver), closed: false, origin, proxy: opened.proxy })
    }

    /// Sends a request and returns once the response head has arrived. The error returns a request of which nothing was
    /// written.
    pub async fn exchange(
        mut self,
        mut request: Request<Full<Bytes>>,
        http: &Arc<Http>,
    ) -> Result<HttpResponse, ExchangeError> {
        let uri = request.uri().clone();
        self.address(&mut request);
        let mut answer = Box::pin(self.sender.try_send_request(request));
        let (driver, closed) = (&mut self.driver, &mut self.closed);
        let response = poll_fn(|cx| {
            let driven = if *closed { Poll::Ready(Ok(())) } else { driver.as_mut().poll(cx) };
            *closed = driven.is_ready();
            match (answer.as_mut().poll(cx), driven) {
                (Poll::Ready(response), _) => Poll::Ready(response.map_err(|mut failed| ExchangeError {
                    unsent: failed.take_message(),
                    error: broken(failed.into_error()),
                })),
                (Poll::Pending, Poll::Ready(Err(error))) => Poll::Ready(Err(broken(error).into())),
                (Poll::Pending, Poll::Ready(Ok(()))) => {
                    Poll::Ready(Err(HttpError::Broken("connection closed".into()).into()))
                }
                (Poll::Pending, Poll::Pending) => Poll::Pending,
            }
        })
        .await
        .map_err(|mut failed| {
            if let Some(request) = &mut failed.unsent {
                *request.uri_mut() = uri;
            }
            failed
        })?;
        drop(answer);
        Ok(HttpResponse::new(response, self, Arc::clone(http)))
    }

    /// Polls the connection. Returns true once it is closed.
    pub fn drive(&mut self, cx: &mut std::task::Context<'_>) -> bool {
        self.closed = self.closed || self.driver.as_mut().poll(cx).is_ready();
        self.closed
    }

    /// Sets `Host`, and reduces the URI to its path unless a proxy needs it whole.
    fn address(&self, request: &mut Request<Full<Bytes>>) {
        if let Some(authority) = request.uri().authority()
            && let Ok(host) = HeaderValue::try_from(authority.as_str())
        {
            request.headers_mut().insert(HOST, host);
        }
        match &self.proxy {
            Some(proxy) => {
                if let Some(auth) = proxy.basic_auth() {
                    request.headers_mut().insert(PROXY_AUTHORIZATION, auth.clone());
                }
            }
            None => {
                if let Some(path) = request.uri().path_and_query().cloned() {
                    *request.uri_mut() = path.into();
                }
            }
        }
    }
}

/// An exchange that failed before the response head.
pub(super) struct ExchangeError {
    pub error: HttpError,
    /// The request, if nothing of it was written.
    pub unsent: Option<Request<Full<Bytes>>>,
}

impl From<HttpError> for ExchangeError {
    fn from(error: HttpError) -> Self {
        Self { error, unsent: None }
    }
}

#[derive(Default)]
pub(super) struct Pool(Mutex<HashMap<Arc<str>, Vec<IdleConnection>>>);

struct IdleConnection {
    connection: Connection,
    since: Instant,
}

impl Pool {
    /// Returns the most recently used idle connection that is still open.
    pub async fn take(&self, origin: &Arc<str>) -> Option<Connection> {
        loop {
            let mut connection = self.pop(origin)?;
            // Lets the runtime process pending events of the socket.
            tokio::task::yield_now().await;
            let closed = poll_fn(|cx| Poll::Ready(connection.drive(cx))).await;
            if !closed && connection.sender.is_ready() {
                return Some(connection);
            }
        }
    }

    pub fn put(&self, connection: Connection) {
        if connection.sender.is_closed() {
            return;
        }
        let mut idle = self.0.lock();
        let total: usize = idle.values().map(Vec::len).sum();
        if total < MAX_IDLE_CONNECTIONS {
            let origin = Arc::clone(&connection.origin);
            idle.entry(origin).or_default().push(IdleConnection { connection, since: Instant::now() });
        }
    }

    /// Also drops all connections that have been idle for too long.
    fn pop(&self, origin: &Arc<str>) -> Option<Connection> {
        let mut idle = self.0.lock();
        idle.retain(|_, connections| {
            connections.retain(|idle| idle.since.elapsed() < MAX_IDLE_TIME);
            !connections.is_empty()
        });
        idle.get_mut(origin)?.pop().map(|idle| idle.connection)
    }
}

pub(super) fn broken(error: hyper::Error) -> HttpError {
    HttpError::Broken(error_chain(&error))
}
