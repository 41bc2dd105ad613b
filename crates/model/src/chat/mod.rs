//! Chat Completions, the API of most providers and local servers. One request gets one stream of chunks; what differs
//! between providers is in the table of [`quirks`].

mod body;
mod chunk;
mod decode;
mod quirks;
mod refusal;
mod think;

use hyper::Method;

use self::decode::Decoder;
use self::quirks::Quirks;
use crate::call::{Call, Caller, trace_headers};
use crate::stream::StreamEvents;
use crate::transcript::{ToolNames, Transcript};
use crate::{Events, ModelError, Request};

const ROUTE: &str = "/chat/completions";

/// The Chat Completions API as one thread calls it.
pub(crate) struct Chat {
    caller: Caller,
    quirks: &'static Quirks,
}

impl Chat {
    pub fn new(caller: Caller) -> Self {
        let quirks = Quirks::of(caller.provider.id(), caller.provider.host().as_deref());
        Self { caller, quirks }
    }

    pub async fn stream(&self, request: &Request) -> Result<Events, ModelError> {
        let names = ToolNames::new(&request.tools);
        let transcript = Transcript::new(&request.input);
        let body = body::body(request, &transcript, &names, self.quirks).to_string().into();
        let call = Call {
            method: Method::POST,
            route: ROUTE,
            accept: "text/event-stream",
            headers: trace_headers(&request.headers),
            body,
            to_error: refusal::to_error,
        };
        let called = self.caller.call(&call).await?;
        let decoder = Decoder::new(names, transcript.call_ids);
        Ok(Events::new(StreamEvents::new(decoder, called, self.caller.provider.stream_idle_timeout())))
    }
}
