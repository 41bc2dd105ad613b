//! Elicitations: a server asks the user for input, by a form or by a link.

use loomd_protocol::{JsonObject, JsonValue, McpElicitationSchema};
use serde::{Deserialize, Serialize};

/// The request of a form of any shape, and the extension that allows it.
pub(crate) const OPENAI_FORM: &str = "openai/form";

/// What a server asks the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Elicitation {
    pub server: String,
    pub message: String,
    pub mode: ElicitationMode,
    pub meta: Option<JsonValue>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ElicitationMode {
    Form {
        requested_schema: McpElicitationSchema,
    },
    /// A form of any shape.
    OpenaiForm {
        requested_schema: JsonValue,
    },
    Url {
        url: String,
        elicitation_id: String,
    },
}

/// The answer to an elicitation, as the server gets it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ElicitationAnswer {
    pub action: ElicitationAction,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<JsonValue>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<JsonValue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ElicitationAction {
    Accept,
    Decline,
    Cancel,
}

impl ElicitationAnswer {
    /// An accepted elicitation without content gets an empty object: servers expect one.
    pub fn accept(content: Option<JsonValue>, meta: Option<JsonValue>) -> Self {
        let content = content.filter(|content| !content.is_null()).unwrap_or_else(|| JsonObject::new().into());
        Self { action: ElicitationAction::Accept, content: Some(content), meta }
    }

    pub fn decline() -> Self {
        Self { action: ElicitationAction::Decline, content: None, meta: None }
    }

    pub fn cancel() -> Self {
        Self { action: ElicitationAction::Cancel, content: None, meta: None }
    }
}

/// The params of `elicitation/create`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    mode: Option<String>,
    message: String,
    requested_schema: Option<McpElicitationSchema>,
    url: Option<String>,
    elicitation_id: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<JsonValue>,
}

/// The params of `openai/form`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenaiFormParams {
    message: String,
    requested_schema: JsonValue,
    #[serde(rename = "_meta")]
    meta: Option<JsonValue>,
}

impl Elicitation {
    /// Decodes the params of `openai/form`, or says what is wrong with them.
    pub(crate) fn decode_openai_form(server: &str, params: Option<JsonValue>) -> Result<Self, String> {
        let text = params.unwrap_or_default().to_string();
        let params: OpenaiFormParams = serde_json::from_str(&text).map_err(|error| format!("invalid form: {error}"))?;
        let mode = ElicitationMode::OpenaiForm { requested_schema: params.requested_schema };
        Ok(Self { server: server.into(), message: params.message, mode, meta: params.meta })
    }

    /// Decodes the params of `elicitation/create`, or says what is wrong with them: also a form with nested objects,
    /// which clients cannot show.
    pub(crate) fn decode(server: &str, params: Option<JsonValue>) -> Result<Self, String> {
        let text = params.unwrap_or_default().to_string();
        let params: Params = serde_json::from_str(&text).map_err(|error| format!("invalid elicitation: {error}"))?;
        let missing = |field: &str| format!("invalid elicitation: missing field `{field}`");
        let mode = match params.mode.as_deref() {
            None | Some("form") => ElicitationMode::Form {
                requested_schema: params.requested_schema.ok_or_else(|| missing("requestedSchema"))?,
            },
            Some("url") => ElicitationMode::Url {
                url: params.url.ok_or_else(|| missing("url"))?,
                elicitation_id: params.elicitation_id.ok_or_else(|| missing("elicitationId"))?,
            },
            Some(other) => return Err(format!("invalid elicitation: unknown mode `{other}`")),
        };
        Ok(Self { server: server.into(), message: params.message, mode, meta: params.meta })
    }
}
