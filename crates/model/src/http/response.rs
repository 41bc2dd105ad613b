//! An HTTP response: its head, and a body that is read piece by piece. At the end of the body the connection returns to
//! the pool.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::{HeaderMap, Response, StatusCode};
use tokio::runtime::Handle;

use super::pool::{Connection, broken};
use super::{Http, HttpError};

/// How long the rest of an unneeded body is read, so that its connection can be reused.
const DRAIN_TIME: Duration = Duration::from_secs(1);
/// How many bytes of it are read.
const DRAIN_BYTES: usize = 64 * 1024;

/// The head of a response, and its body to be read.
pub struct HttpResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: ResponseBody,
}

impl HttpResponse {
    pub(super) fn new(response: Response<Incoming>, connection: Connection, http: Arc<Http>) -> Self {
        let (head, incoming) = response.into_parts();
        Self {
            status: head.status,
            headers: head.headers,
            body: ResponseBody { incoming, connection: Some(connection), http },
        }
    }
}

/// A body that is read by its consumer. Dropped before its end, it closes the connection.
pub struct ResponseBody {
    incoming: Incoming,
    /// `None` once the body has ended.
    connection: Option<Connection>,
    http: Arc<Http>,
}

impl ResponseBody {
    /// Returns the next piece; `None` at the end.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, HttpError>>> {
        loop {
            let Some(connection) = &mut self.connection else { return Poll::Ready(None) };
            let closed = connection.drive(cx);
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    self.connection = None;
                    return Poll::Ready(Some(Err(broken(error))));
                }
                Poll::Ready(None) => {
                    self.return_to_pool(closed, cx);
                    return Poll::Ready(None);
                }
                Poll::Pending if closed => {
                    self.connection = None;
                    return Poll::Ready(Some(Err(HttpError::Broken("connection closed".into()))));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Reads the body, truncated to `limit` bytes.
    pub async fn read(mut self, limit: usize) -> Result<Vec<u8>, HttpError> {
        let mut bytes = Vec::new();
        while let Some(piece) = poll_fn(|cx| self.poll_next(cx)).await {
            let piece = piece?;
            let room = limit - bytes.len();
            bytes.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() >= room {
                break;
            }
        }
        Ok(bytes)
    }

    /// Reads the rest of the body in the background, within limits. Mostly only the end marker is left, which has
    /// arrived already.
    pub fn drain(mut self) {
        match (self.poll_next(&mut Context::from_waker(Waker::noop())), Handle::try_current()) {
            (Poll::Ready(None | Some(Err(_))), _) | (_, Err(_)) => {}
            (Poll::Ready(Some(Ok(_))) | Poll::Pending, Ok(runtime)) => {
                runtime.spawn(tokio::time::timeout(DRAIN_TIME, self.read(DRAIN_BYTES)));
            }
        }
    }

    fn return_to_pool(&mut self, closed: bool, cx: &mut Context<'_>) {
        if let Some(mut connection) = self.connection.take()
            && !closed
            && !connection.drive(cx)
        {
            self.http.pool.put(connection);
        }
    }
}
