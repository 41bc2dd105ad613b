//! The keys of requests that clients may send again.

use loomd_protocol::RpcError;
use loomd_store::RequestKey;
use serde::Serialize;

use crate::context::Context;
use crate::refusals::wire_error;

/// The key of a request that the client may send again.
pub(super) fn request_key(
    method: &'static str,
    key: Option<&str>,
    params: &impl Serialize,
) -> Result<Option<RequestKey>, RpcError> {
    key.map(|key| loomd_agent::request_key(method, key, params)).transpose().map_err(wire_error)
}

/// The same for the id of a user message. Clients that did not ask for event ids may use an id twice.
pub(super) fn message_key(
    cx: &Context,
    method: &'static str,
    id: Option<&str>,
    params: &impl Serialize,
) -> Result<Option<RequestKey>, RpcError> {
    request_key(method, id.filter(|_| cx.client.event_ids), params)
}
