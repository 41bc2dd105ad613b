//! From a decoded request to the function that answers it: one match.

use std::sync::Arc;

use loomd_protocol::{Call, ClientRequest, RequestId, RpcError, call, encode_error, encode_response};

use crate::app::App;
use crate::handlers::{config, mock, thread};

/// What a handler may use.
#[derive(Clone)]
pub(crate) struct Context {
    pub app: Arc<App>,
}

/// Answers a request with one message.
pub(crate) async fn dispatch(cx: Context, id: RequestId, request: ClientRequest) -> Vec<u8> {
    use ClientRequest as R;
    match request {
        R::ThreadLoadedList(params) => answer::<call::ThreadLoadedList>(&id, thread::loaded_list(&cx, params).await),
        R::ConfigRead(params) => answer::<call::ConfigRead>(&id, config::read(&cx, params).await),
        R::ConfigRequirementsRead(_) => answer::<call::ConfigRequirementsRead>(&id, config::requirements(&cx).await),
        R::MockExperimentalMethod(params) => answer::<call::MockExperimentalMethod>(&id, mock::experimental(params)),
        other => encode_error(&id, &not_available(other.method())),
    }
}

/// Encodes what a handler gave; the types say that it answers this method and no other.
fn answer<C: Call>(id: &RequestId, outcome: Result<C::Result, RpcError>) -> Vec<u8> {
    let encoded = outcome.and_then(|result| {
        encode_response(id, &result)
            .map_err(|error| RpcError::internal(format!("failed to serialize the response: {error}")))
    });
    encoded.unwrap_or_else(|error| encode_error(id, &error))
}

/// The method is part of the protocol but not of this release.
pub(crate) fn not_available(method: &str) -> RpcError {
    RpcError::internal(format!("{method} is not available yet"))
}
