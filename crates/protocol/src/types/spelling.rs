//! Other spellings of policies in requests. Early descriptions of the protocol write sandbox modes and approval policies
//! in camel case, a policy's `type` as `mode`, and a granular approval policy by what it rejects.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{AskForApproval, JsonObject, JsonValue, SandboxMode, SandboxPolicy};

/// The sandbox of a thread: a preset, or a whole policy as `turn/start` takes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SandboxSetting {
    Mode(SandboxMode),
    Policy(SandboxPolicy),
}

impl From<SandboxMode> for SandboxSetting {
    fn from(mode: SandboxMode) -> Self {
        Self::Mode(mode)
    }
}

impl<'de> Deserialize<'de> for SandboxSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match JsonValue::deserialize(deserializer)? {
            JsonValue::Object(policy) => decode(canonical_policy(policy)).map(Self::Policy),
            mode => decode(canonical_mode(mode)).map(Self::Mode),
        }
    }
}

/// The schema of the preset: the other form is accepted, not advertised.
impl JsonSchema for SandboxSetting {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        SandboxMode::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        SandboxMode::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        SandboxMode::json_schema(generator)
    }
}

/// Decodes an approval policy, also in another spelling.
pub fn approval_policy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<AskForApproval>, D::Error> {
    let value = match JsonValue::deserialize(deserializer)? {
        JsonValue::Null => return Ok(None),
        JsonValue::String(name) => JsonValue::String(canonical_approval(name)),
        JsonValue::Object(mut policy) if policy.len() == 1 => match policy.remove("reject") {
            Some(JsonValue::Object(rejected)) => granular(rejected),
            Some(other) => {
                return Err(D::Error::custom(format!("invalid value for `reject`: {other}, expected an object")));
            }
            None => JsonValue::Object(policy),
        },
        other => other,
    };
    decode(value).map(Some)
}

/// Decodes a sandbox policy, also in another spelling.
pub fn sandbox_policy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SandboxPolicy>, D::Error> {
    match JsonValue::deserialize(deserializer)? {
        JsonValue::Null => Ok(None),
        JsonValue::Object(policy) => decode(canonical_policy(policy)).map(Some),
        other => decode(other).map(Some),
    }
}

fn decode<T: DeserializeOwned, E: serde::de::Error>(value: JsonValue) -> Result<T, E> {
    T::deserialize(value).map_err(E::custom)
}

fn canonical_approval(name: String) -> String {
    match name.as_str() {
        // Whatever is not known to be harmless needs an approval.
        "unlessTrusted" | "always" => "untrusted".into(),
        "onRequest" => "on-request".into(),
        "onFailure" => "on-failure".into(),
        _ => name,
    }
}

/// The granular policy that requests what `rejected` does not reject.
fn granular(rejected: JsonObject) -> JsonValue {
    let mut requested: JsonObject =
        ["sandbox_approval", "rules", "skill_approval", "request_permissions", "mcp_elicitations"]
            .into_iter()
            .map(|name| (name.to_owned(), JsonValue::Bool(true)))
            .collect();
    for (name, value) in rejected {
        // What is no boolean is left for the decoder to refuse.
        let value = value.as_bool().map_or(value, |rejected| JsonValue::Bool(!rejected));
        requested.insert(name, value);
    }
    JsonValue::Object(JsonObject::from_iter([("granular".to_owned(), JsonValue::Object(requested))]))
}

fn canonical_mode(mode: JsonValue) -> JsonValue {
    match mode.as_str() {
        Some("readOnly") => "read-only".into(),
        Some("workspaceWrite") => "workspace-write".into(),
        Some("dangerFullAccess") => "danger-full-access".into(),
        _ => mode,
    }
}

fn canonical_policy(mut policy: JsonObject) -> JsonValue {
    if !policy.contains_key("type")
        && let Some(mode) = policy.remove("mode")
    {
        policy.insert("type".into(), mode);
    }
    if let Some(kind) = policy.get_mut("type") {
        let name = match kind.as_str() {
            Some("read-only") => "readOnly",
            Some("workspace-write") => "workspaceWrite",
            Some("danger-full-access") => "dangerFullAccess",
            Some("external-sandbox") => "externalSandbox",
            _ => return JsonValue::Object(policy),
        };
        *kind = name.into();
    }
    JsonValue::Object(policy)
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use crate::{CommandExecParams, ThreadStartParams, TurnStartParams};

    use super::*;

    fn thread(params: JsonValue) -> JsonValue {
        json!(from_value::<ThreadStartParams>(params).unwrap())
    }

    fn turn(mut params: JsonValue) -> Result<JsonValue, String> {
        params["threadId"] = "t".into();
        params["input"] = json!([]);
        let mut decoded = json!(from_value::<TurnStartParams>(params).map_err(|error| error.to_string())?);
        let decoded = decoded.as_object_mut().unwrap();
        decoded.retain(|key, _| key == "approvalPolicy" || key == "sandboxPolicy");
        Ok(decoded.clone().into())
    }

    #[test]
    fn a_thread_can_be_started_with_camel_case_modes_and_with_a_whole_policy() {
        let started = |sandbox: JsonValue| thread(json!({ "sandbox": sandbox }))["sandbox"].clone();
        assert_eq!(started(json!("workspaceWrite")), "workspace-write");
        assert_eq!(started(json!("readOnly")), "read-only");
        assert_eq!(started(json!("dangerFullAccess")), "danger-full-access");
        assert_eq!(started(json!("read-only")), "read-only");
        assert_eq!(started(json!(null)), json!(null));
        let policy = started(json!({ "type": "workspaceWrite", "networkAccess": true, "writableRoots": ["/a"] }));
        assert_eq!((&policy["networkAccess"], &policy["writableRoots"]), (&json!(true), &json!(["/a"])));
        assert_eq!(started(json!({ "mode": "danger-full-access" })), json!({ "type": "dangerFullAccess" }));
    }

    #[test]
    fn approval_policies_are_decoded_in_camel_case() {
        let decoded = |policy: &str| turn(json!({ "approvalPolicy": policy })).unwrap()["approvalPolicy"].clone();
        for (written, meant) in [
            ("unlessTrusted", "untrusted"),
            ("always", "untrusted"),
            ("onRequest", "on-request"),
            ("onFailure", "on-failure"),
            ("never", "never"),
            ("on-request", "on-request"),
        ] {
            assert_eq!(decoded(written), meant);
        }
        assert_eq!(thread(json!({ "approvalPolicy": "unlessTrusted" }))["approvalPolicy"], "untrusted");
    }

    #[test]
    fn a_policy_of_rejections_is_the_granular_one_that_requests_the_rest() {
        let rejected = json!({ "sandbox_approval": true, "rules": false, "mcp_elicitations": true });
        assert_eq!(
            turn(json!({ "approvalPolicy": { "reject": rejected } })).unwrap(),
            json!({ "approvalPolicy": { "granular": {
                "sandbox_approval": false,
                "rules": true,
                "skill_approval": true,
                "request_permissions": true,
                "mcp_elicitations": false,
            } } })
        );
        let refused = |policy: JsonValue| turn(json!({ "approvalPolicy": policy })).unwrap_err();
        assert_eq!(refused(json!({ "reject": { "rules": 1 } })), "invalid type: integer `1`, expected a boolean");
        assert_eq!(refused(json!({ "reject": 1 })), "invalid value for `reject`: 1, expected an object");
    }

    #[test]
    fn the_type_of_a_sandbox_policy_may_be_called_mode() {
        let written = json!({ "sandboxPolicy": { "mode": "workspaceWrite", "networkAccess": true } });
        let policy = &turn(written).unwrap()["sandboxPolicy"];
        assert_eq!((&policy["type"], &policy["networkAccess"]), (&json!("workspaceWrite"), &json!(true)));
        let params = json!({ "command": ["ls"], "sandboxPolicy": { "mode": "read-only" } });
        let params: CommandExecParams = from_value(params).unwrap();
        assert!(matches!(params.sandbox_policy, Some(SandboxPolicy::ReadOnly { .. })));
    }

    #[test]
    fn unknown_spellings_are_refused_with_the_canonical_names() {
        let refused = |params| from_value::<ThreadStartParams>(params).unwrap_err().to_string();
        assert_eq!(
            refused(json!({ "sandbox": "bogus" })),
            "unknown variant `bogus`, expected one of `read-only`, `workspace-write`, `danger-full-access`"
        );
        assert_eq!(
            refused(json!({ "approvalPolicy": "bogus" })),
            "unknown variant `bogus`, expected one of `untrusted`, `on-failure`, `on-request`, `granular`, `never`"
        );
        assert_eq!(
            turn(json!({ "sandboxPolicy": { "type": "bogus" } })).unwrap_err(),
            "unknown variant `bogus`, expected one of `dangerFullAccess`, `readOnly`, `externalSandbox`, `workspaceWrite`"
        );
        assert_eq!(turn(json!({ "sandboxPolicy": {} })).unwrap_err(), "missing field `type`");
    }
}
