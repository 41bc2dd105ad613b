//! Chooses the tool for a step among those that the request offers. Ids of sessions and agents are taken from earlier
//! tool outputs.

use loomd_protocol::{JsonValue, ResponseItem};
use serde_json::json;

use super::step::ToolAction;
use crate::{ToolSpec, Tools};

/// How long a command in the background is waited for.
const YIELD_MS: u64 = 250;

/// Returns the item of a call. A function that is offered inside a namespace only is called there.
pub(super) fn call(action: &ToolAction, tools: &Tools, outputs: &[String], call_id: String) -> ResponseItem {
    let mut item = bare_call(action, tools, outputs, call_id);
    if let ResponseItem::FunctionCall { name, namespace, .. } = &mut item
        && !tools.specs().iter().any(|spec| spec.name() == name)
    {
        *namespace = tools.specs().iter().find_map(|spec| namespace_with(spec, name));
    }
    item
}

/// The name of a namespace that has a function of this name.
fn namespace_with(spec: &ToolSpec, function: &str) -> Option<String> {
    let ToolSpec::Other(value) = spec else { return None };
    let members = value["tools"].as_array().filter(|_| value["type"] == "namespace")?;
    let has = members.iter().any(|member| member["name"] == function);
    has.then(|| value["name"].as_str().unwrap_or_default().to_owned())
}

fn bare_call(action: &ToolAction, tools: &Tools, outputs: &[String], call_id: String) -> ResponseItem {
    let offered = |name: &str| tools.specs().iter().find(|spec| spec.name() == name);
    match action {
        ToolAction::Run { command, background, escalated } => {
            let (name, mut arguments) = if offered("exec_command").is_some() {
                let mut arguments = json!({ "cmd": command });
                if *background {
                    arguments["tty"] = true.into();
                    arguments["yield_time_ms"] = YIELD_MS.into();
                }
                ("exec_command", arguments)
            } else if offered("shell").is_some() && offered("shell_command").is_none() {
                ("shell", json!({ "command": ["bash", "-lc", command] }))
            } else {
                ("shell_command", json!({ "command": command }))
            };
            if *escalated {
                arguments["sandbox_permissions"] = "require_escalated".into();
                arguments["justification"] = format!("May I run `{command}` without the sandbox?").into();
            }
            function(name, &arguments, call_id)
        }
        ToolAction::Type(text) => {
            let session: u64 = last(outputs, |text| {
                let at = text.find("session ID ")? + "session ID ".len();
                let digits: String = text[at..].chars().take_while(char::is_ascii_digit).collect();
                digits.parse().ok()
            })
            .unwrap_or(0);
            function("write_stdin", &json!({ "session_id": session, "chars": text }), call_id)
        }
        ToolAction::Patch(text) => match offered("apply_patch") {
            Some(ToolSpec::Function { .. }) => function("apply_patch", &json!({ "input": text }), call_id),
            _ => custom("apply_patch", text, call_id),
        },
        ToolAction::Function { name, arguments } => function(name, arguments, call_id),
        ToolAction::Custom { name, input } => custom(name, input, call_id),
        ToolAction::SendAgent(message) => {
            function("send_input", &json!({ "target": agent(outputs), "message": message }), call_id)
        }
        ToolAction::WaitAgents => function("wait_agent", &json!({ "targets": agents(outputs) }), call_id),
        ToolAction::CloseAgent => function("close_agent", &json!({ "target": agent(outputs) }), call_id),
    }
}

fn function(name: &str, arguments: &JsonValue, call_id: String) -> ResponseItem {
    let arguments = match arguments {
        JsonValue::String(text) => text.clone(),
        JsonValue::Null => "{}".into(),
        other => other.to_string(),
    };
    ResponseItem::FunctionCall { name: name.into(), namespace: None, arguments, call_id, id: None }
}

fn custom(name: &str, input: &str, call_id: String) -> ResponseItem {
    ResponseItem::CustomToolCall { status: None, call_id, name: name.into(), input: input.into(), id: None }
}

/// Returns the ids of all spawned agents.
fn agents(outputs: &[String]) -> Vec<String> {
    outputs.iter().filter_map(|text| agent_id(text)).collect()
}

fn agent(outputs: &[String]) -> String {
    last(outputs, agent_id).unwrap_or_default()
}

fn agent_id(output: &str) -> Option<String> {
    let output: JsonValue = serde_json::from_str(output).ok()?;
    output["agent_id"].as_str().map(Into::into)
}

fn last<T>(outputs: &[String], find: impl Fn(&str) -> Option<T>) -> Option<T> {
    outputs.iter().rev().find_map(|text| find(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_a_namespace_is_called_in_it() {
        let member = json!({ "type": "function", "name": "spawn_agent" });
        let namespace = json!({ "type": "namespace", "name": "agents", "tools": [member] });
        let tools = Tools::new(vec![ToolSpec::Other(namespace)]);
        let namespace_of = |name: &str| {
            let action = ToolAction::Function { name: name.into(), arguments: json!({}) };
            match call(&action, &tools, &[], "call".into()) {
                ResponseItem::FunctionCall { namespace, .. } => namespace,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(namespace_of("spawn_agent").as_deref(), Some("agents"));
        assert_eq!(namespace_of("other"), None);
    }
}
