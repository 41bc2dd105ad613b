//! Validates the dynamic tools of a client.

use std::collections::HashSet;

use loomd_model::complete_schema;
use loomd_protocol::{DynamicTool, DynamicToolSpec};

use crate::refusal::Refusal;

/// Refuses names that are empty, reserved or used twice, and input schemas that models do not take.
pub(crate) fn check_dynamic_tools(specs: &[DynamicToolSpec]) -> Result<(), Refusal> {
    let tools = specs.iter().flat_map(|spec| match spec {
        DynamicToolSpec::Function(tool) => std::slice::from_ref(tool),
        DynamicToolSpec::Namespace(namespace) => &namespace.tools,
    });
    let mut seen = HashSet::new();
    for DynamicTool { name, input_schema, .. } in tools {
        let problem = if name.trim().is_empty() {
            "dynamic tool name must not be empty".into()
        } else if name.trim() != name {
            format!("dynamic tool name has leading/trailing whitespace: {name}")
        } else if name == "mcp" || name.starts_with("mcp__") {
            format!("dynamic tool name is reserved: {name}")
        } else if !seen.insert(name) {
            format!("duplicate dynamic tool name: {name}")
        } else if let Err(problem) = complete_schema(input_schema) {
            format!("dynamic tool input schema is not supported for {name}: {problem}")
        } else {
            continue;
        };
        return Err(Refusal::Invalid(problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(names: &[&str], expected: Result<(), &str>) {
        let tool = |name: &&str| json!({"name": name, "description": "", "inputSchema": {"type": "object"}});
        let specs: Vec<_> = names.iter().map(tool).collect();
        let specs: Vec<DynamicToolSpec> = serde_json::from_value(json!(specs)).unwrap();
        let checked = check_dynamic_tools(&specs).map_err(|refusal| refusal.to_string());
        assert_eq!(checked, expected.map_err(str::to_owned), "{names:?}");
    }

    #[test]
    fn dynamic_tools_with_unusable_names_are_refused() {
        check(&["a", "b"], Ok(()));
        check(&["a", " "], Err("dynamic tool name must not be empty"));
        check(&["a "], Err("dynamic tool name has leading/trailing whitespace: a "));
        check(&["mcp"], Err("dynamic tool name is reserved: mcp"));
        check(&["mcp__x"], Err("dynamic tool name is reserved: mcp__x"));
        check(&["a", "a"], Err("duplicate dynamic tool name: a"));
    }
}
