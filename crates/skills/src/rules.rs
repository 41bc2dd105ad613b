//! `[[skills.config]]`: which skills are enabled. Later rules override earlier ones.

use std::path::{Path, PathBuf};

use loomd_config::LayerStack;
use loomd_config::config_toml::SkillRule;
use loomd_protocol::ConfigLayerSource;

/// What a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillSelector {
    /// A `SKILL.md`.
    Path(PathBuf),
    /// Every skill of this name.
    Name(String),
}

/// The rules in force, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillRules(Vec<(SkillSelector, bool)>);

impl SkillRules {
    /// The rules of the user's file and of flags. Those of projects do not count, so that a repository cannot disable
    /// or enable anything.
    pub fn of(stack: &LayerStack) -> Self {
        let mut rules = Vec::new();
        for layer in stack.enabled() {
            if matches!(layer.source, ConfigLayerSource::User { .. } | ConfigLayerSource::SessionFlags)
                && let Some(list) = layer.table.get("skills").and_then(|skills| skills.get("config")?.as_array())
            {
                let parsed = list.iter().filter_map(|rule| rule.clone().try_into::<SkillRule>().ok());
                rules.extend(parsed.filter_map(selected));
            }
        }
        Self(rules)
    }

    /// Whether the last rule about a skill enables it. Without one it is enabled. `path` has symlinks resolved.
    pub fn is_enabled(&self, name: &str, path: Option<&Path>) -> bool {
        let matches = |selector: &SkillSelector| match selector {
            SkillSelector::Path(rule) => path == Some(rule),
            SkillSelector::Name(rule) => rule == name,
        };
        self.0.iter().rev().find(|(selector, _)| matches(selector)).is_none_or(|(_, enabled)| *enabled)
    }
}

/// A rule with both or neither selector has no effect.
fn selected(rule: SkillRule) -> Option<(SkillSelector, bool)> {
    let name = rule.name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    match (rule.path, name) {
        (Some(path), None) => {
            let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
            Some((SkillSelector::Path(real), rule.enabled))
        }
        (None, Some(name)) => Some((SkillSelector::Name(name), rule.enabled)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use loomd_config::Layer;
    use loomd_protocol::AbsolutePathBuf;

    use super::*;

    fn rules(user: &str, project: &str, flags: &str) -> SkillRules {
        let path = |name: &str| AbsolutePathBuf::new(name).unwrap();
        SkillRules::of(&LayerStack::new(vec![
            Layer::new(ConfigLayerSource::User { file: path("/u"), profile: None }, user.parse().unwrap()),
            Layer::new(ConfigLayerSource::Project { dot_codex_folder: path("/p") }, project.parse().unwrap()),
            Layer::new(ConfigLayerSource::SessionFlags, flags.parse().unwrap()),
        ]))
    }

    fn enabled(rules: &SkillRules, name: &str, path: &str) -> bool {
        rules.is_enabled(name, Some(Path::new(path)))
    }

    #[test]
    fn the_last_rule_about_a_skill_decides() {
        let user = "skills.config = [{ name = 'a', enabled = false }, { path = '/s/1/SKILL.md', enabled = true }]";
        let rules = rules(user, "", "");
        assert!(!enabled(&rules, "a", "/s/2/SKILL.md"));
        assert!(enabled(&rules, "a", "/s/1/SKILL.md"));
        assert!(enabled(&rules, "b", "/s/2/SKILL.md"));
    }

    #[test]
    fn flags_override_the_users_file_and_projects_do_not_count() {
        let user = "skills.config = [{ name = 'a', enabled = false }]";
        let rules = rules(user, "skills.config = [{ name = 'b', enabled = false }]", &user.replace("false", "true"));
        assert!(enabled(&rules, "a", "/x"));
        assert!(enabled(&rules, "b", "/x"));
    }

    #[test]
    fn rules_with_both_or_neither_selector_have_no_effect() {
        let user = "skills.config = [{ name = 'a', path = '/s', enabled = false }, { enabled = false }, { name = ' ', enabled = false }]";
        assert_eq!(rules(user, "", ""), SkillRules::default());
    }
}
