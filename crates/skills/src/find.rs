//! The skills in a list of roots.

use std::collections::HashSet;
use std::path::Path;

use loomd_protocol::{SkillErrorInfo, SkillScope};

use crate::agent_yaml::AgentYaml;
use crate::front_matter::{FrontMatter, MAX_NAME, SkillFileError, within};
use crate::namespace::Namespaces;
use crate::rules::SkillRules;
use crate::skill::{Skill, SkillRoot, SkillSet};
use crate::walk::walk;

/// Longer files are no skills.
const MAX_FILE: u64 = 1 << 20;

/// Finds the skills in `roots`. A file that lies in several roots belongs to the first.
pub fn find(roots: &[SkillRoot], rules: &SkillRules) -> SkillSet {
    let mut set = SkillSet::default();
    let (mut seen, mut namespaces) = (HashSet::new(), Namespaces::default());
    for root in roots {
        let is_system = root.scope == SkillScope::System;
        for path in walk(&root.folder, !is_system).skill_files {
            if !seen.insert(path.clone()) {
                continue;
            }
            match read(&path, root.scope, &mut namespaces) {
                Ok(Some(mut skill)) => {
                    skill.enabled = rules.is_enabled(&skill.name, Some(&skill.path));
                    skill.plugin_id.clone_from(&root.plugin_id);
                    set.skills.push(skill);
                }
                Ok(None) => {}
                Err(error) if is_system => tracing::warn!(path = %path.display(), %error, "invalid system skill"),
                Err(error) => set
                    .errors
                    .push(SkillErrorInfo { path: path.to_string_lossy().into_owned(), message: error.to_string() }),
            }
        }
    }
    set.skills.sort_by(|one, other| {
        let key = |skill: &Skill| rank(skill.scope);
        (key(one), &one.name, &one.path).cmp(&(key(other), &other.name, &other.path))
    });
    set
}

/// Reads one skill as if no rule were about it. `None` when it is meant for other products.
pub fn read_skill(path: &Path, scope: SkillScope) -> Result<Option<Skill>, SkillFileError> {
    read(path, scope, &mut Namespaces::default())
}

fn read(path: &Path, scope: SkillScope, namespaces: &mut Namespaces) -> Result<Option<Skill>, SkillFileError> {
    let unreadable = |error: std::io::Error| SkillFileError::Unreadable(error.to_string());
    let text = loomd_regular::read_to_string(path, MAX_FILE).map_err(unreadable)?;
    let FrontMatter { name, description, short_description } = FrontMatter::parse(&text)?;
    let folder = path.parent().unwrap_or(path);
    let folder_name = || folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut name = name.unwrap_or_else(folder_name);
    if let Some(plugin) = namespaces.of(folder) {
        name = format!("{plugin}:{name}");
    }
    let name = within(name, "name", MAX_NAME)?;
    let AgentYaml { interface, dependencies, allow_implicit_invocation, for_us } = AgentYaml::read(folder);
    Ok(for_us.then(|| Skill {
        name,
        description,
        short_description,
        interface,
        dependencies,
        allow_implicit_invocation,
        path: path.to_owned(),
        scope,
        enabled: true,
        plugin_id: None,
    }))
}

/// The order of scopes in listings.
fn rank(scope: SkillScope) -> u8 {
    match scope {
        SkillScope::Repo => 0,
        SkillScope::User => 1,
        SkillScope::System => 2,
        SkillScope::Admin => 3,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    struct Fixture {
        dir: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            Self { dir: tempfile::tempdir().unwrap() }
        }

        fn put(&self, file: &str, text: &str) -> PathBuf {
            let path = self.dir.path().canonicalize().unwrap().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        }

        fn skill(&self, folder: &str) -> PathBuf {
            self.put(&format!("{folder}/SKILL.md"), "---\ndescription: d\n---\n")
        }

        fn find(&self, roots: &[(&str, SkillScope)]) -> SkillSet {
            let root = |(folder, scope): &(&str, SkillScope)| SkillRoot {
                folder: self.dir.path().join(folder),
                scope: *scope,
                plugin_id: None,
            };
            find(&roots.iter().map(root).collect::<Vec<_>>(), &SkillRules::default())
        }
    }

    fn names(set: &SkillSet) -> Vec<(&str, SkillScope)> {
        set.skills.iter().map(|skill| (&*skill.name, skill.scope)).collect()
    }

    use SkillScope::{Admin, Repo, System, User};

    #[test]
    fn skills_are_sorted_by_scope_name_and_path_and_the_first_root_of_a_file_wins() {
        let fixture = Fixture::new();
        for folder in ["admin/a", "system/a", "user/y/twin", "user/x/twin", "user/b", "repo/z"] {
            fixture.skill(folder);
        }
        let roots =
            [("admin", Admin), ("system", System), ("user", User), ("user/x", Repo), ("repo", Repo), ("none", User)];
        let set = fixture.find(&roots);
        let twins = ("twin", User);
        assert_eq!(names(&set), [("z", Repo), ("b", User), twins, twins, ("a", System), ("a", Admin)]);
        assert!(set.skills[2].path < set.skills[3].path);
        assert!(set.errors.is_empty());
    }

    #[test]
    fn skills_of_a_plugin_have_its_prefix_within_the_limit() {
        let fixture = Fixture::new();
        fixture.put("p/.codex-plugin/plugin.json", r#"{"name": " good "}"#);
        fixture.put("q/.codex-plugin/plugin.json", "{}");
        fixture.put("r/.codex-plugin/plugin.json", "[");
        fixture.put("plugins/cache/m/installed/local/.codex-plugin/plugin.json", "{}");
        fixture.skill("plugins/cache/m/installed/local/skills/four");
        for folder in ["p/skills/one", "q/deep/skills/two", "r/three"] {
            fixture.skill(folder);
        }
        let long = "x".repeat(60);
        let path = fixture.skill(&format!("p/skills/{long}"));
        let set = fixture.find(&[("p", User), ("q", User), ("r", User), ("plugins", User)]);
        let expected = [("good:one", User), ("installed:four", User), ("q:two", User), ("three", User)];
        assert_eq!(names(&set), expected);
        let error = SkillErrorInfo {
            path: path.to_str().unwrap().into(),
            message: "invalid name: exceeds maximum length of 64 characters".into(),
        };
        assert_eq!(set.errors, [error]);
    }

    #[test]
    fn errors_of_system_skills_and_skills_for_other_products_are_not_listed() {
        let fixture = Fixture::new();
        fixture.put("system/bad/SKILL.md", "nothing");
        fixture.skill("user/other");
        fixture.put("user/other/agents/openai.yaml", "policy: {products: [chatgpt]}");
        assert_eq!(fixture.find(&[("system", System), ("user", User)]), SkillSet::default());
        fixture.put("user/large/SKILL.md", &"x".repeat(MAX_FILE as usize + 1));
        let set = fixture.find(&[("user", User)]);
        assert_eq!(set.errors[0].message, "failed to read file: is larger than 1048576 bytes");
    }
}
