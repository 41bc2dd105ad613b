//! What the model is told about skills and plugins. The tags are fixed; other programs look for them.

use std::fmt::Write as _;
use std::path::Path;

use super::trimmed;

const SKILLS: &str = trimmed(include_str!("../../prompts/skills.md"));
const PLUGINS: &str = trimmed(include_str!("../../prompts/plugins.md"));

/// The most bytes of the list of skills. Those beyond it are only counted.
const MAX_LIST: usize = 128 * 1024;

/// A line of the list of skills.
pub struct ListedSkill<'a> {
    pub name: &'a str,
    pub description: &'a str,
    pub path: &'a Path,
}

/// The section with all skills that the model may use by itself; `None` without any.
pub fn skills_section<'a>(skills: impl Iterator<Item = ListedSkill<'a>>) -> Option<String> {
    let (mut list, mut left_out) = (String::new(), 0_usize);
    for ListedSkill { name, description, path } in skills {
        let line = format!("- {name}: {description} (file: {})\n", path.display());
        if list.len() + line.len() > MAX_LIST {
            left_out += 1;
        } else {
            list.push_str(&line);
        }
    }
    if list.is_empty() {
        return None;
    }
    if left_out > 0 {
        _ = writeln!(list, "({left_out} more are not listed here; the user can name them.)");
    }
    let text = SKILLS.replacen("{skills}", list.trim_end(), 1);
    Some(format!("<skills_instructions>\n{text}\n</skills_instructions>"))
}

/// The message with the instructions of a skill that the user named.
pub fn skill_message(name: &str, path: &Path, text: &str) -> String {
    format!("<skill>\n<name>{name}</name>\n<path>{}</path>\n{text}\n</skill>", path.display())
}

/// The section with all active plugins; `None` without any. Each is its name and description.
pub fn plugins_section<'a>(plugins: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> Option<String> {
    let mut list = String::new();
    for (name, description) in plugins {
        _ = match description {
            Some(description) => writeln!(list, "- `{name}`: {description}"),
            None => writeln!(list, "- `{name}`"),
        };
    }
    if list.is_empty() {
        return None;
    }
    let text = PLUGINS.replacen("{plugins}", list.trim_end(), 1);
    Some(format!("<plugins_instructions>\n{text}\n</plugins_instructions>"))
}

/// What a plugin that the user mentioned brings.
pub struct MentionedPlugin<'a> {
    pub display_name: &'a str,
    /// The prefix of its skills, if it has any.
    pub skill_prefix: Option<&'a str>,
    pub mcp_servers: Vec<&'a str>,
    pub apps: Vec<&'a str>,
}

/// The message about a plugin that the user mentioned.
pub fn plugin_message(plugin: &MentionedPlugin<'_>) -> String {
    let MentionedPlugin { display_name, skill_prefix, mcp_servers, apps } = plugin;
    let mut text = format!("The user wants the plugin `{display_name}` to be used for this request. It brings:\n");
    if let Some(prefix) = skill_prefix {
        _ = writeln!(text, "- skills, whose names begin with `{prefix}:`");
    }
    for (what, names) in [("the tools of MCP servers", mcp_servers), ("apps", apps)] {
        if !names.is_empty() {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            _ = writeln!(text, "- {what}: {}", names.join(", "));
        }
    }
    if skill_prefix.is_none() && mcp_servers.is_empty() && apps.is_empty() {
        text.push_str("- nothing that can be used here; say so\n");
    }
    text.push_str("Use what fits in preference to other ways.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill<'a>(name: &'a str, description: &'a str) -> ListedSkill<'a> {
        ListedSkill { name, description, path: Path::new("/s/SKILL.md") }
    }

    #[test]
    fn every_skill_is_a_line_with_its_file() {
        let text = skills_section([skill("a", "does a"), skill("b", "does b")].into_iter()).unwrap();
        assert!(text.starts_with("<skills_instructions>\n") && text.ends_with("\n</skills_instructions>"), "{text}");
        assert!(text.contains("\n- a: does a (file: /s/SKILL.md)\n- b: does b (file: /s/SKILL.md)\n"), "{text}");
        assert!(!text.contains("{skills}"));
        assert_eq!(skills_section([].into_iter()), None);
    }

    #[test]
    fn a_long_list_is_cut_and_says_so() {
        let description = "d".repeat(1024);
        let text = skills_section((0..1000).map(|_| skill("a", &description))).unwrap();
        assert!(text.len() < MAX_LIST + 8 * 1024, "{} bytes", text.len());
        assert!(text.contains("(876 more are not listed here; the user can name them.)"), "{}", &text[MAX_LIST..]);
    }

    #[test]
    fn a_mentioned_plugin_names_only_what_it_brings() {
        let all = MentionedPlugin {
            display_name: "Good One",
            skill_prefix: Some("good"),
            mcp_servers: vec!["helper", "web"],
            apps: vec!["connector_x"],
        };
        let text = plugin_message(&all);
        for part in ["`Good One`", "`good:`", "`helper`, `web`", "apps: `connector_x`"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let none = MentionedPlugin { skill_prefix: None, mcp_servers: Vec::new(), apps: Vec::new(), ..all };
        assert!(
            !plugin_message(&none).contains("skills") && plugin_message(&none).contains("nothing that can be used")
        );
    }

    #[test]
    fn plugins_without_a_description_are_listed_by_name() {
        let text = plugins_section([("A", Some("does a")), ("B", None)].into_iter()).unwrap();
        assert!(text.contains("\n- `A`: does a\n- `B`\n"), "{text}");
        assert_eq!(plugins_section([].into_iter()), None);
    }
}
