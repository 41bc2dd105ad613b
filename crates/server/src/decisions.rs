//! Between approvals of the agent and server requests of the protocol: what is sent, and what an answer decides.

use loomd_agent::{ApprovalDecision, ApprovalRequest};
use loomd_protocol::{
    Call, CommandExecutionRequestApprovalResponse, FileChangeRequestApprovalResponse, JsonValue, RequestId, RpcError,
    ask, encode_request,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What a tool call that the client refused tells the model.
const FAILED: &str = "dynamic tool request failed";

/// What a tool call whose result cannot be decoded tells the model.
const INVALID: &str = "dynamic tool response was invalid";

/// The server request of an approval, as one line without its newline.
pub(crate) fn encode(request: &ApprovalRequest, id: &RequestId) -> Result<Vec<u8>, serde_json::Error> {
    match request {
        ApprovalRequest::Command(params) => encode_call::<ask::CommandExecutionApproval>(id, params),
        ApprovalRequest::Patch(params) => encode_call::<ask::FileChangeApproval>(id, params),
        ApprovalRequest::Permissions(params) => encode_call::<ask::PermissionsApproval>(id, params),
        ApprovalRequest::UserInput(params) => encode_call::<ask::ToolUserInput>(id, params),
        ApprovalRequest::ToolCall(params) => encode_call::<ask::DynamicToolCall>(id, params),
        ApprovalRequest::Elicitation(params) => encode_call::<ask::McpServerElicitation>(id, params),
    }
}

fn encode_call<C: Call>(id: &RequestId, params: &C::Params) -> Result<Vec<u8>, serde_json::Error>
where
    C::Params: Serialize,
{
    encode_request(id, C::METHOD, params)
}

/// The decision that an answer makes. An error, or a result that cannot be decoded, allows nothing.
pub(crate) fn decision(request: &ApprovalRequest, answer: Result<JsonValue, RpcError>) -> ApprovalDecision {
    let Ok(result) = answer else { return request.declined(FAILED) };
    let decided = match request {
        ApprovalRequest::Command(_) => decode(result)
            .map(|CommandExecutionRequestApprovalResponse { decision }| ApprovalDecision::Command(decision)),
        ApprovalRequest::Patch(_) => {
            decode(result).map(|FileChangeRequestApprovalResponse { decision }| ApprovalDecision::Patch(decision))
        }
        ApprovalRequest::Permissions(_) => decode(result).map(ApprovalDecision::Permissions),
        ApprovalRequest::UserInput(_) => decode(result).map(ApprovalDecision::UserInput),
        ApprovalRequest::ToolCall(_) => decode(result).map(ApprovalDecision::ToolCall),
        ApprovalRequest::Elicitation(_) => decode(result).map(ApprovalDecision::Elicitation),
    };
    decided.unwrap_or_else(|| request.declined(INVALID))
}

fn decode<T: DeserializeOwned>(result: JsonValue) -> Option<T> {
    serde_json::from_value(result).ok()
}
