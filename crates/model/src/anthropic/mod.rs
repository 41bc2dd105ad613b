//! The Anthropic Messages API. One request gets one stream of events about the content blocks of a message. Thinking is
//! sent back to the model with its signature; see [`crate::transcript`] for how it is stored.

mod body;
mod decode;
mod models;
mod refusal;

use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method};

use self::decode::Decoder;
use crate::call::{Call, Caller, trace_headers};
use crate::stream::StreamEvents;
use crate::transcript::{ToolNames, Transcript};
use crate::{Events, ModelError, Request};

const ROUTE: &str = "/messages";

/// The API version that the provider's own SDKs request.
pub(crate) const VERSION: &str = "2026-10-21";

/// The Messages API as one thread calls it.
pub(crate) struct Anthropic {
    caller: Caller,
}

impl Anthropic {
    pub fn new(caller: Caller) -> Self {
        Self { caller }
    }

    pub async fn stream(&self, request: &Request) -> Result<Events, ModelError> {
        let names = ToolNames::new(&request.tools);
        let transcript = Transcript::new(&request.input);
        let body = body::body(request, &transcript, &names).to_string().into();
        let mut headers = headers();
        headers.extend(trace_headers(&request.headers));
        let call = Call {
            method: Method::POST,
            route: ROUTE,
            accept: "text/event-stream",
            headers,
            body,
            to_error: refusal::to_error,
        };
        let called = self.caller.call(&call).await?;
        let decoder = Decoder::new(names, transcript.call_ids);
        Ok(Events::new(StreamEvents::new(decoder, called, self.caller.provider.stream_idle_timeout())))
    }
}

/// The headers that every request carries.
pub(crate) fn headers() -> HeaderMap {
    HeaderMap::from_iter([(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION))])
}
