//! `agents/openai.yaml` beside a `SKILL.md`: how clients show the skill, what it needs, and who may use it. Each field
//! that is not understood is left out alone, without an error.

use std::path::{Component, Path};

use loomd_protocol::{SkillDependencies, SkillInterface, SkillToolDependency};

use crate::front_matter::{MAX_NAME, MAX_TEXT, one_line};
use crate::yaml::{self, Node};

/// Where it is, relative to the folder of the skill.
pub(crate) const FILE: &str = "agents/openai.yaml";

/// The product that this server is.
const PRODUCT: &str = "codex";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentYaml {
    pub interface: Option<SkillInterface>,
    pub dependencies: Option<SkillDependencies>,
    pub allow_implicit_invocation: bool,
    /// False when it is meant for other products only.
    pub for_us: bool,
}

impl Default for AgentYaml {
    fn default() -> Self {
        Self { interface: None, dependencies: None, allow_implicit_invocation: true, for_us: true }
    }
}

impl AgentYaml {
    /// Reads the file of a skill's folder. A missing or broken file says nothing.
    pub fn read(folder: &Path) -> Self {
        let text = loomd_regular::read_to_string(&folder.join(FILE), yaml::MAX_BYTES as u64);
        text.map_or_else(|_| Self::default(), |text| Self::parse(&text, folder))
    }

    pub fn parse(text: &str, folder: &Path) -> Self {
        let Ok(document) = yaml::parse(text) else { return Self::default() };
        let policy = document.get("policy");
        let implicit = policy.and_then(|policy| policy.get("allow_implicit_invocation")).and_then(Node::as_text);
        let products = policy.and_then(|policy| policy.get("products")).and_then(Node::as_list).unwrap_or_default();
        let is_ours = |product: &Node| product.as_text().is_some_and(|name| name.trim().eq_ignore_ascii_case(PRODUCT));
        Self {
            interface: document.get("interface").and_then(|interface| interface_of(interface, folder)),
            dependencies: document.get("dependencies").and_then(dependencies_of),
            allow_implicit_invocation: !implicit.is_some_and(|text| text.eq_ignore_ascii_case("false")),
            for_us: products.is_empty() || products.iter().any(is_ours),
        }
    }
}

fn interface_of(node: &Node, folder: &Path) -> Option<SkillInterface> {
    let interface = SkillInterface {
        display_name: text(node, "display_name", MAX_NAME),
        short_description: text(node, "short_description", MAX_TEXT),
        icon_small: text(node, "icon_small", MAX_TEXT).and_then(|path| asset(&path, folder)),
        icon_large: text(node, "icon_large", MAX_TEXT).and_then(|path| asset(&path, folder)),
        icon_small_url: None,
        icon_large_url: None,
        brand_color: text(node, "brand_color", MAX_NAME).filter(|color| is_color(color)),
        default_prompt: text(node, "default_prompt", MAX_TEXT),
    };
    let SkillInterface { display_name, short_description, icon_small, icon_large, brand_color, default_prompt, .. } =
        &interface;
    let fields = [display_name, short_description, icon_small, icon_large, brand_color, default_prompt];
    fields.iter().any(|field| field.is_some()).then_some(interface)
}

fn dependencies_of(node: &Node) -> Option<SkillDependencies> {
    let tool = |node: &Node| {
        Some(SkillToolDependency {
            r#type: text(node, "type", MAX_NAME)?,
            value: text(node, "value", MAX_TEXT)?,
            description: text(node, "description", MAX_TEXT),
            transport: text(node, "transport", MAX_NAME),
            command: text(node, "command", MAX_TEXT),
            url: text(node, "url", MAX_TEXT),
        })
    };
    let tools: Vec<_> = node.get("tools")?.as_list()?.iter().filter_map(tool).collect();
    (!tools.is_empty()).then_some(SkillDependencies { tools })
}

/// A text of a map in one line; `None` when it is missing, empty or too long.
fn text(node: &Node, key: &str, limit: usize) -> Option<String> {
    let text = one_line(node.get(key)?.as_text()?);
    (!text.is_empty() && text.chars().count() <= limit).then_some(text)
}

/// The absolute path of a file below `assets` of the skill's folder. It need not exist.
fn asset(path: &str, folder: &Path) -> Option<String> {
    let mut parts = Path::new(path).components().filter(|part| *part != Component::CurDir).peekable();
    let starts_in_assets = matches!(parts.peek(), Some(Component::Normal(name)) if *name == "assets");
    let mut file = folder.to_path_buf();
    for part in parts {
        let Component::Normal(name) = part else { return None };
        file.push(name);
    }
    starts_in_assets.then(|| file.to_string_lossy().into_owned())
}

/// Whether it is `#RRGGBB`.
fn is_color(text: &str) -> bool {
    text.strip_prefix('#').is_some_and(|hex| hex.len() == 6 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(yaml: &str) -> AgentYaml {
        AgentYaml::parse(yaml, Path::new("/s"))
    }

    fn interface(yaml: &str) -> Option<SkillInterface> {
        parsed(&format!("interface:\n{yaml}")).interface
    }

    #[test]
    fn each_invalid_field_is_left_out_alone() {
        let yaml = "  display_name: \" a\\n b \"\n  short_description: [x]\n  icon_small: ./assets/s.png\n  \
                    icon_large: ../assets/l.png\n  brand_color: red\n  default_prompt: 3\n";
        let expected = SkillInterface {
            display_name: Some("a b".into()),
            short_description: None,
            icon_small: Some("/s/assets/s.png".into()),
            icon_large: None,
            icon_small_url: None,
            icon_large_url: None,
            brand_color: None,
            default_prompt: Some("3".into()),
        };
        assert_eq!(interface(yaml), Some(expected));
        assert_eq!(interface(&format!("  display_name: {}\n", "x".repeat(65))), None);
        assert_eq!(interface("  display_name: ''\n"), None);
        assert_eq!(parsed("interface: 3\npolicy: {allow_implicit_invocation: false}").interface, None);
    }

    #[test]
    fn icons_lie_below_assets() {
        for path in ["/s/assets/x.png", "x.png", "assets/../x.png", "./assets/../../x", "../assets/x"] {
            assert_eq!(interface(&format!("  icon_small: {path}\n")), None, "{path}");
        }
        assert_eq!(asset("assets", Path::new("/s")).as_deref(), Some("/s/assets"));
    }

    #[test]
    fn dependencies_need_a_type_and_a_value() {
        let tools = "dependencies:\n  tools:\n  - {type: mcp, value: x, url: 'https://x.test'}\n  - {value: v}\n  - {type: '', value: v}\n";
        let found = parsed(tools).dependencies.unwrap().tools;
        let summary: Vec<_> = found.iter().map(|tool| (&*tool.r#type, &*tool.value, tool.url.as_deref())).collect();
        assert_eq!(summary, [("mcp", "x", Some("https://x.test"))]);
        assert_eq!(parsed("dependencies: {tools: []}").dependencies, None);
    }

    #[test]
    fn policy_decides_about_implicit_use_and_products() {
        let policy = |yaml: &str| {
            let parsed = parsed(&format!("policy: {yaml}"));
            (parsed.allow_implicit_invocation, parsed.for_us)
        };
        assert_eq!(policy("{}"), (true, true));
        assert_eq!(policy("{allow_implicit_invocation: false, products: []}"), (false, true));
        assert_eq!(policy("{products: [chatgpt, CODEX]}"), (true, true));
        assert_eq!(policy("{products: [chatgpt]}"), (true, false));
        assert_eq!(parsed("policy: ["), AgentYaml::default());
    }

    proptest! {
        #[test]
        fn any_text_is_accepted(yaml in "([a-z:\\[\\]{}&*'\"|>\n -]|\\PC){0,200}") {
            parsed(&yaml);
        }
    }
}
