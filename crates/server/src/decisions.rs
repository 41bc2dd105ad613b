//! Maps approvals of the agent to server requests of the protocol, and their answers to decisions.

use loomd_agent::{ApprovalDecision, ApprovalRequest};
use loomd_protocol::{
    CommandExecutionRequestApprovalResponse, FileChangeRequestApprovalResponse, JsonValue, RequestId, RpcError,
    server_call,
};
use serde::de::DeserializeOwned;

use crate::encoded_request::EncodedRequest;

/// The output of a tool call that the client answered with an error.
const FAILED: &str = "dynamic tool request failed";

/// The output of a tool call whose result cannot be decoded.
const INVALID: &str = "dynamic tool response was invalid";

/// The server request of an approval.
pub(crate) fn encode(request: &ApprovalRequest, id: &RequestId) -> Result<EncodedRequest, serde_json::Error> {
    match request {
        ApprovalRequest::Command(params) => {
            EncodedRequest::of_call::<server_call::CommandExecutionApproval>(params, id)
        }
        ApprovalRequest::Patch(params) => EncodedRequest::of_call::<server_call::FileChangeApproval>(params, id),
        ApprovalRequest::Permissions(params) => EncodedRequest::of_call::<server_call::PermissionsApproval>(params, id),
        ApprovalRequest::UserInput(params) => EncodedRequest::of_call::<server_call::ToolUserInput>(params, id),
        ApprovalRequest::ToolCall(params) => EncodedRequest::of_call::<server_call::DynamicToolCall>(params, id),
        ApprovalRequest::Elicitation(params) => {
            EncodedRequest::of_call::<server_call::McpServerElicitation>(params, id)
        }
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(kind: &str) -> ApprovalRequest {
        let ids = json!({ "threadId": "t", "turnId": "u", "itemId": "i", "startedAtMs": 0 });
        let params = |more: JsonValue| {
            let mut params = ids.clone();
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            params
        };
        match kind {
            "command" => ApprovalRequest::Command(serde_json::from_value(params(json!({}))).unwrap()),
            "patch" => ApprovalRequest::Patch(serde_json::from_value(params(json!({}))).unwrap()),
            "permissions" => {
                let more = json!({ "permissions": {}, "cwd": "/" });
                ApprovalRequest::Permissions(serde_json::from_value(params(more)).unwrap())
            }
            "user input" => {
                ApprovalRequest::UserInput(serde_json::from_value(params(json!({ "questions": [] }))).unwrap())
            }
            "tool call" => {
                let more = json!({ "callId": "i", "tool": "x", "arguments": {} });
                ApprovalRequest::ToolCall(serde_json::from_value(params(more)).unwrap())
            }
            _ => {
                let more =
                    json!({ "serverName": "s", "mode": "url", "message": "m", "url": "u", "elicitationId": "e" });
                ApprovalRequest::Elicitation(serde_json::from_value(params(more)).unwrap())
            }
        }
    }

    const KINDS: [&str; 6] = ["command", "patch", "permissions", "user input", "tool call", "elicitation"];

    #[test]
    fn an_error_or_a_malformed_result_allows_nothing() {
        for kind in KINDS {
            let request = request(kind);
            assert_eq!(request.name(), kind);
            assert_eq!(decision(&request, Err(RpcError::internal("no"))), request.declined(FAILED));
            for result in [json!(null), json!("accept"), json!({}), json!({ "decision": "yes" }), json!([1])] {
                let malformed = request.declined(INVALID);
                // An elicitation or a grant may omit members, but an omitted member never accepts.
                assert_eq!(decision(&request, Ok(result.clone())), malformed, "{kind}: {result}");
            }
        }
    }

    #[test]
    fn an_answer_decides_the_request_that_it_is_for() {
        let accepted = decision(&request("command"), Ok(json!({ "decision": "acceptForSession" })));
        let expected = loomd_protocol::CommandExecutionApprovalDecision::AcceptForSession;
        assert_eq!(accepted, ApprovalDecision::Command(expected));
        let output = json!({ "contentItems": [{ "type": "inputText", "text": "42" }], "success": true });
        let ApprovalDecision::ToolCall(response) = decision(&request("tool call"), Ok(output)) else {
            panic!("no call")
        };
        assert!(response.success);
        let granted = json!({ "permissions": { "network": { "enabled": true } }, "scope": "session" });
        let ApprovalDecision::Permissions(granted) = decision(&request("permissions"), Ok(granted)) else {
            panic!("no permissions")
        };
        assert_eq!(granted.scope, loomd_protocol::PermissionGrantScope::Session);
    }

    #[test]
    fn every_kind_is_sent_with_the_method_of_its_name() {
        let methods = KINDS.map(|kind| {
            let encoded = encode(&request(kind), &RequestId::Integer(7)).unwrap();
            let json: JsonValue = serde_json::from_slice(encoded.json(true)).unwrap();
            assert_eq!((&json["id"], &json["params"]["threadId"]), (&json!(7), &json!("t")));
            json["method"].as_str().unwrap().to_owned()
        });
        let expected = [
            "item/commandExecution/requestApproval",
            "item/fileChange/requestApproval",
            "item/permissions/requestApproval",
            "item/tool/requestUserInput",
            "item/tool/call",
            "mcpServer/elicitation/request",
        ];
        assert_eq!(methods, expected);
    }
}
