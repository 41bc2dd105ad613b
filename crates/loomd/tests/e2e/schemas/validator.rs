//! The part of JSON Schema that bundles of this protocol use.

use serde_json::Value;

/// A bundle: all types, those of v2 one level down.
pub struct Bundle(pub Value);

impl Bundle {
    /// What is wrong with a value of a type, or the type is unknown.
    pub fn problems(&self, name: &str, value: &Value) -> Vec<String> {
        let of = |prefix: &str| self.0.pointer(&format!("{prefix}/{name}"));
        let Some(schema) = of("/definitions/v2").or_else(|| of("/definitions")) else {
            return vec![format!("{name}: no such type")];
        };
        self.check(schema, value).err().map(|problem| format!("{name}{problem}")).into_iter().collect()
    }

    fn check(&self, schema: &Value, value: &Value) -> Result<(), String> {
        if let Some(reference) = schema["$ref"].as_str() {
            let target = self.0.pointer(reference.trim_start_matches('#'));
            self.check(target.ok_or_else(|| format!(": {reference} is nowhere"))?, value)?;
        }
        self.check_type(schema, value)?;
        if let Some(values) = schema["enum"].as_array()
            && !values.contains(value)
        {
            return Err(format!(": {value} is none of {}", schema["enum"]));
        }
        if let Some(all) = schema["allOf"].as_array() {
            all.iter().try_for_each(|one| self.check(one, value))?;
        }
        for keyword in ["oneOf", "anyOf"] {
            if let Some(alternatives) = schema[keyword].as_array() {
                self.check_alternatives(alternatives, value)?;
            }
        }
        self.check_members(schema, value)
    }

    fn check_type(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => return Ok(()),
        };
        let is = |kind: &&str| match *kind {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => false,
        };
        if kinds.iter().any(is) { Ok(()) } else { Err(format!(": {value} is not {}", kinds.join(" or "))) }
    }

    /// The problem of the alternative that has the same method or type, else of all.
    fn check_alternatives(&self, alternatives: &[Value], value: &Value) -> Result<(), String> {
        let results: Vec<_> = alternatives.iter().map(|one| (one, self.check(one, value))).collect();
        if results.iter().any(|(_, result)| result.is_ok()) {
            return Ok(());
        }
        let is_meant = |one: &Value| {
            ["method", "type"].iter().any(|tag| {
                let wanted = one["properties"][tag]["enum"].as_array();
                wanted.is_some_and(|values| values.contains(&value[tag]))
            })
        };
        match results.into_iter().find(|(one, _)| is_meant(one)) {
            Some((_, result)) => result.map_err(|problem| {
                let tag = value["method"].as_str().or(value["type"].as_str()).unwrap_or_default();
                format!("({tag}){problem}")
            }),
            None => Err(format!(": no alternative for {value}")),
        }
    }

    fn check_members(&self, schema: &Value, value: &Value) -> Result<(), String> {
        if let (Some(items), Some(elements)) = (schema.get("items"), value.as_array()) {
            elements
                .iter()
                .try_for_each(|element| self.check(items, element).map_err(|problem| format!("[]{problem}")))?;
        }
        let Some(members) = value.as_object() else { return Ok(()) };
        for field in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(field) {
                return Err(format!(".{field} is missing"));
            }
        }
        for (name, member) in members {
            let property = schema["properties"].get(name);
            let described = property.or_else(|| schema.get("additionalProperties").filter(|all| all.is_object()));
            if let Some(described) = described {
                self.check(described, member).map_err(|problem| format!(".{name}{problem}"))?;
            } else if schema["additionalProperties"] == Value::Bool(false) {
                return Err(format!(".{name} is not expected"));
            }
        }
        Ok(())
    }
}
