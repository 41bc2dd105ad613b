//! [`EncodedRequest`]: a server request in the forms in which clients are sent it.

use bytes::Bytes;
use loomd_agent::EventId;
use loomd_protocol::{RequestId, ServerCall, ServerRequest, encode_request, with_event_id};

/// A server request, encoded once for all connections. Clients without the experimental interface are sent it without
/// its experimental fields; it is encoded a second time only if it has any.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EncodedRequest {
    json: Bytes,
    stable: Option<Bytes>,
}

impl EncodedRequest {
    pub fn new(request: &ServerRequest, id: &RequestId) -> Result<Self, serde_json::Error> {
        let stable = request.stable().map(|stable| stable.encode(id)).transpose()?;
        Ok(Self { json: request.encode(id)?.into(), stable: stable.map(Bytes::from) })
    }

    /// The same from the params of a request.
    pub fn of_call<C: ServerCall>(params: &C::Params, id: &RequestId) -> Result<Self, serde_json::Error> {
        let encode = |params: &C::Params| encode_request(id, C::METHOD, params).map(Bytes::from);
        let stable = C::stable_params(params).as_ref().map(encode).transpose()?;
        Ok(Self { json: encode(params)?, stable })
    }

    /// The same as an event of a thread.
    pub fn with_event_id(&self, id: EventId) -> Self {
        let marked = |json: &Bytes| Bytes::from(with_event_id(json, &id));
        Self { json: marked(&self.json), stable: self.stable.as_ref().map(marked) }
    }

    /// The message for a client, by whether it asked for the experimental interface.
    pub fn json(&self, experimental: bool) -> &Bytes {
        match &self.stable {
            Some(stable) if !experimental => stable,
            _ => &self.json,
        }
    }
}

#[cfg(test)]
mod tests {
    use loomd_protocol::{CommandExecutionRequestApprovalParams, JsonValue, server_call};
    use serde_json::json;

    use super::*;

    /// The params that clients of the experimental and of the stable interface are sent.
    fn sent(params: JsonValue) -> [JsonValue; 2] {
        let params: CommandExecutionRequestApprovalParams = serde_json::from_value(params).unwrap();
        let id = RequestId::Integer(3);
        let encoded = EncodedRequest::of_call::<server_call::CommandExecutionApproval>(&params, &id).unwrap();
        assert_eq!(encoded, EncodedRequest::new(&ServerRequest::CommandExecutionApproval(params), &id).unwrap());
        [true, false].map(|experimental| {
            let message: JsonValue = serde_json::from_slice(encoded.json(experimental)).unwrap();
            assert_eq!(
                (&message["id"], &message["method"]),
                (&json!(3), &json!("item/commandExecution/requestApproval"))
            );
            message["params"].clone()
        })
    }

    #[test]
    fn experimental_fields_are_sent_only_to_clients_that_asked_for_them() {
        let stable = json!({
            "threadId": "t", "turnId": "u", "itemId": "i", "startedAtMs": 0, "availableDecisions": ["accept", "cancel"],
        });
        assert_eq!(sent(stable.clone()), [stable.clone(), stable.clone()]);
        let mut full = stable.clone();
        full["additionalPermissions"] = json!({ "network": { "enabled": true }, "fileSystem": null });
        let [experimental, other] = sent(full);
        assert_eq!(experimental["additionalPermissions"]["network"], json!({ "enabled": true }));
        assert_eq!(other, stable);
    }

    #[test]
    fn a_request_without_experimental_fields_is_encoded_once_for_all() {
        let params = json!({ "threadId": "t", "turnId": "u", "itemId": "i", "startedAtMs": 0 });
        let params = serde_json::from_value(params).unwrap();
        let id = RequestId::Integer(0);
        let encoded = EncodedRequest::of_call::<server_call::FileChangeApproval>(&params, &id).unwrap();
        assert_eq!(encoded.json(true).as_ptr(), encoded.json(false).as_ptr());
    }
}
