//! A call of a tool and its output, as they pass between the model and the tools.

use loomd_protocol::{FunctionCallOutputBody, LocalShellAction, ResponseItem};
use serde::de::DeserializeOwned;

/// The output of a tool, or an error as a text for the model.
pub(crate) type ToolResult = Result<Output, String>;

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub id: String,
    pub namespace: Option<String>,
    pub name: String,
    pub input: CallInput,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallInput {
    /// JSON, as the model wrote it.
    Arguments(String),
    /// Free text.
    Text(String),
    /// JSON of a search for tools, whose output is a list of them.
    Search(String),
}

impl Call {
    /// The call in an item of the model; `None` when the item is none that needs an output.
    pub fn of(item: &ResponseItem) -> Option<Self> {
        Some(match item {
            ResponseItem::FunctionCall { name, namespace, arguments, call_id, .. } => Self {
                id: call_id.clone(),
                namespace: namespace.clone(),
                name: name.clone(),
                input: CallInput::Arguments(arguments.clone()),
            },
            ResponseItem::CustomToolCall { name, input, call_id, .. } => {
                Self { id: call_id.clone(), namespace: None, name: name.clone(), input: CallInput::Text(input.clone()) }
            }
            ResponseItem::LocalShellCall { call_id: Some(call_id), action, .. } => {
                let LocalShellAction::Exec { command, timeout_ms, working_directory, .. } = action;
                let arguments = serde_json::json!({
                    "command": command, "timeout_ms": timeout_ms, "workdir": working_directory,
                });
                Self {
                    id: call_id.clone(),
                    namespace: None,
                    name: "local_shell".into(),
                    input: CallInput::Arguments(arguments.to_string()),
                }
            }
            ResponseItem::ToolSearchCall { call_id: Some(call_id), execution, arguments, .. }
                if execution == "client" =>
            {
                Self {
                    id: call_id.clone(),
                    namespace: None,
                    name: "tool_search".into(),
                    input: CallInput::Search(arguments.to_string()),
                }
            }
            _ => return None,
        })
    }

    /// The decoded arguments.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, String> {
        let text = match &self.input {
            CallInput::Arguments(text) | CallInput::Search(text) => text.as_str(),
            CallInput::Text(_) => return Err(format!("{} takes arguments, not text", self.name)),
        };
        serde_json::from_str(text).map_err(|error| format!("failed to parse function arguments: {error}"))
    }

    /// The output when there is no such tool.
    pub fn unsupported(&self) -> String {
        match self.input {
            CallInput::Arguments(_) | CallInput::Search(_) => format!("unsupported call: {}", self.name),
            CallInput::Text(_) => format!("unsupported custom tool call: {}", self.name),
        }
    }

    /// The item that answers the call.
    pub fn output(&self, output: FunctionCallOutputBody) -> ResponseItem {
        let call_id = self.id.clone();
        match self.input {
            CallInput::Arguments(_) => {
                ResponseItem::FunctionCallOutput { call_id, name: None, namespace: None, output }
            }
            CallInput::Text(_) => ResponseItem::CustomToolCallOutput { call_id, name: None, output },
            // The wire has no place for an error: a search that failed found nothing.
            CallInput::Search(_) => ResponseItem::ToolSearchOutput {
                call_id: Some(call_id),
                status: "completed".into(),
                execution: "client".into(),
                tools: match output {
                    FunctionCallOutputBody::Text(tools) => serde_json::from_str(&tools).unwrap_or_default(),
                    FunctionCallOutputBody::Items(_) => Vec::new(),
                },
            },
        }
    }
}

/// The output of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Output {
    pub body: FunctionCallOutputBody,
    /// Further items for the conversation.
    pub notes: Vec<ResponseItem>,
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self { body: FunctionCallOutputBody::Text(text), notes: Vec::new() }
    }
}

impl From<&str> for Output {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_search_for_tools_is_answered_with_a_list_of_tools() {
        let item = |execution: &str| ResponseItem::ToolSearchCall {
            call_id: Some("c".into()),
            status: None,
            execution: execution.into(),
            arguments: json!({ "query": "mail" }),
            id: None,
        };
        // The provider answers its own searches.
        assert_eq!(Call::of(&item("server")), None);
        let call = Call::of(&item("client")).unwrap();
        let tools = |text: &str| match call.output(FunctionCallOutputBody::Text(text.into())) {
            ResponseItem::ToolSearchOutput { call_id: Some(id), tools, .. } if id == "c" => tools,
            other => panic!("not the output of a search: {other:?}"),
        };
        assert_eq!(tools(r#"[{"type":"namespace"}]"#), [json!({ "type": "namespace" })]);
        assert_eq!(tools("query must not be empty"), [] as [serde_json::Value; 0]);
    }
}
