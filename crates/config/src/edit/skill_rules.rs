//! `[[skills.config]]` of the user's file: one rule per skill that is not in its usual state.

use std::path::Path;

use loomd_protocol::AbsolutePathBuf;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value, value};

use super::WriteError;

/// The skills that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillRuleTarget {
    /// A `SKILL.md`.
    Path(AbsolutePathBuf),
    /// All skills of a name.
    Name(String),
}

impl SkillRuleTarget {
    fn key(&self) -> &'static str {
        match self {
            Self::Path(_) => "path",
            Self::Name(_) => "name",
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Path(path) => path.to_string_lossy().into_owned(),
            Self::Name(name) => name.clone(),
        }
    }

    fn matches(&self, rule: &dyn TableLike) -> bool {
        let text = |key: &str| rule.get(key).and_then(Item::as_str);
        match (self, text("path"), text("name")) {
            (Self::Path(path), Some(given), None) => {
                let (given, path): (&Path, &Path) = (Path::new(given), path);
                given == path
                    || given.canonicalize().is_ok_and(|real| path.canonicalize().is_ok_and(|path| path == real))
            }
            (Self::Name(name), None, Some(given)) => given.trim() == name,
            _ => false,
        }
    }
}

/// Removes the rules about a target. Returns whether there were any.
pub(super) fn remove(document: &mut DocumentMut, target: &SkillRuleTarget) -> bool {
    let Some(skills) = document.get_mut("skills").and_then(Item::as_table_like_mut) else { return false };
    let Some(rules) = skills.get_mut("config") else { return false };
    let (before, after) = match rules {
        Item::ArrayOfTables(rules) => {
            let before = rules.len();
            rules.retain(|rule| !target.matches(rule));
            (before, rules.len())
        }
        Item::Value(Value::Array(rules)) => {
            let before = rules.len();
            rules.retain(|rule| !rule.as_inline_table().is_some_and(|rule| target.matches(rule)));
            (before, rules.len())
        }
        _ => return false,
    };
    if after == 0 {
        skills.remove("config");
    }
    before != after
}

/// Adds a rule behind all others, in the notation of those that are there.
pub(super) fn append(document: &mut DocumentMut, target: &SkillRuleTarget, enabled: bool) -> Result<(), WriteError> {
    let skills = document.entry("skills").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let is_inline = skills.is_inline_table();
    let skills = skills.as_table_like_mut().ok_or(WriteError::NotATable)?;
    if skills.get("config").is_none_or(Item::is_none) {
        let none = if is_inline { value(Array::new()) } else { Item::ArrayOfTables(ArrayOfTables::new()) };
        skills.insert("config", none);
    }
    match skills.get_mut("config") {
        Some(Item::ArrayOfTables(rules)) => {
            let mut rule = Table::new();
            rule.insert(target.key(), value(target.text()));
            rule.insert("enabled", value(enabled));
            rules.push(rule);
        }
        Some(Item::Value(Value::Array(rules))) => {
            let mut rule = InlineTable::new();
            rule.insert(target.key(), target.text().into());
            rule.insert("enabled", enabled.into());
            rules.push(rule);
        }
        _ => return Err(WriteError::Validation("skills.config must be a list of tables".into())),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> SkillRuleTarget {
        SkillRuleTarget::Name(name.into())
    }

    fn appended(text: &str, target: &SkillRuleTarget) -> String {
        let mut document: DocumentMut = text.parse().unwrap();
        append(&mut document, target, false).unwrap();
        document.to_string()
    }

    fn removed(text: &str, target: &SkillRuleTarget) -> Option<String> {
        let mut document: DocumentMut = text.parse().unwrap();
        remove(&mut document, target).then(|| document.to_string())
    }

    #[test]
    fn a_rule_is_added_behind_the_others() {
        let first = appended("# mine\nmodel = 'm'\n\n[skills.bundled]\nenabled = false\n", &name("a"));
        let expected = "# mine\nmodel = 'm'\n\n[skills.bundled]\nenabled = false\n\n[[skills.config]]\nname = \"a\"\nenabled = false\n";
        assert_eq!(first, expected);
        let path = SkillRuleTarget::Path(AbsolutePathBuf::new("/s/SKILL.md").unwrap());
        let second = appended(&first, &path);
        assert_eq!(second, format!("{expected}\n[[skills.config]]\npath = \"/s/SKILL.md\"\nenabled = false\n"));
        assert_eq!(removed(&second, &path).unwrap(), first);
        let inline = appended("skills = { config = [{ name = 'x', enabled = false }] }\n", &name("a"));
        assert_eq!(
            inline,
            "skills = { config = [{ name = 'x', enabled = false }, { name = \"a\", enabled = false }] }\n"
        );
    }

    #[test]
    fn only_rules_with_exactly_this_selector_are_removed() {
        let text =
            "[[skills.config]]\nname = 'a' # why\nenabled = false\n\n[[skills.config]]\nname = 'b'\nenabled = false\n";
        assert_eq!(removed(text, &name("c")), None);
        assert_eq!(removed(text, &name("b")).unwrap(), "[[skills.config]]\nname = 'a' # why\nenabled = false\n");
        assert_eq!(removed("skills.config = [{ name = 'a', path = '/x', enabled = false }]", &name("a")), None);
        assert_eq!(removed("[[skills.config]]\nname = ' a '\nenabled = false\n", &name("a")).unwrap(), "");
    }
}
