//! Which skills user input names: `$name`, `[$name](path)`, or an input of type `skill`.

use std::collections::HashSet;

use loomd_protocol::UserInput;

use crate::skill::Skill;

/// Common variables of shells, which are not meant as skills.
const VARIABLES: [&str; 11] =
    ["PATH", "HOME", "USER", "SHELL", "PWD", "TMPDIR", "TEMP", "TMP", "LANG", "TERM", "XDG_CONFIG_HOME"];

/// What the text of an input mentions with one sigil, such as `$` for skills and apps or `@` for plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    /// The targets of links: `[$name](target)`.
    pub links: HashSet<String>,
    /// Names that are no part of a link.
    pub names: HashSet<String>,
}

impl Mentions {
    /// Reads the mentions of a text. Names consist of ASCII letters, digits, `_`, `-` and `:`, as many as follow.
    pub fn of(text: &str, sigil: char) -> Self {
        let mut mentions = Self::default();
        mentions.add(text, sigil);
        mentions
    }

    /// Adds the mentions of a further text.
    pub fn add(&mut self, text: &str, sigil: char) {
        let mut rest = text;
        while let Some(at) = rest.find(sigil) {
            let linked = rest[..at].ends_with('[');
            rest = &rest[at + sigil.len_utf8()..];
            let end = rest.find(|char: char| !is_name(char)).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            rest = after;
            if name.is_empty() {
                continue;
            }
            let link =
                after.strip_prefix(']').filter(|_| linked).and_then(|after| after.trim_start().strip_prefix('('));
            let target = link.and_then(|target| target.split_once(')'));
            let is_variable = VARIABLES.iter().any(|variable| variable.eq_ignore_ascii_case(name));
            match target {
                Some((target, after)) => {
                    rest = after;
                    if !is_variable {
                        self.links.insert(target.trim().to_owned());
                    }
                }
                None if !is_variable => _ = self.names.insert(name.to_owned()),
                None => {}
            }
        }
    }
}

fn is_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | ':')
}

/// Returns the enabled skills that an input names, each once: those of `skill` inputs in their order, then linked
/// ones, then those whose plain name is mentioned and means no other skill and none of `other_names`.
pub fn select<'a>(skills: &'a [Skill], input: &[UserInput], other_names: &HashSet<String>) -> Vec<&'a Skill> {
    let skills: Vec<(&Skill, String)> =
        skills.iter().filter(|skill| skill.enabled).map(|skill| (skill, skill.path_text())).collect();
    let mut selected: Vec<&Skill> = Vec::new();
    let mut select = |skill: &'a Skill| {
        if !selected.iter().any(|known| known.path == skill.path) {
            selected.push(skill);
        }
    };
    let mut mentions = Mentions::default();
    // The names of `skill` inputs are taken, also when nothing is at their path.
    let mut taken = HashSet::new();
    for part in input {
        match part {
            UserInput::Skill { name, path } => {
                taken.insert(name.as_str());
                skills.iter().filter(|(_, known)| known == path).for_each(|(skill, _)| select(skill));
            }
            UserInput::Text { text, .. } => mentions.add(text, '$'),
            _ => {}
        }
    }
    let links: HashSet<&str> = mentions.links.iter().map(|target| target_path(target)).collect();
    skills.iter().filter(|(_, path)| links.contains(&**path)).for_each(|(skill, _)| select(skill));
    for (skill, _) in &skills {
        let name = &skill.name;
        let is_unique = || skills.iter().filter(|(other, _)| other.name == *name).count() == 1;
        if mentions.names.contains(name) && !taken.contains(&**name) && !other_names.contains(name) && is_unique() {
            select(skill);
        }
    }
    selected
}

fn target_path(target: &str) -> &str {
    target.strip_prefix("skill://").unwrap_or(target)
}

#[cfg(test)]
mod tests {
    use loomd_protocol::SkillScope;
    use proptest::prelude::*;

    use super::*;

    fn skill(name: &str, path: &str) -> Skill {
        Skill {
            name: name.into(),
            description: "d".into(),
            short_description: None,
            interface: None,
            dependencies: None,
            allow_implicit_invocation: true,
            path: path.into(),
            scope: SkillScope::User,
            enabled: true,
            plugin_id: None,
        }
    }

    fn text(text: &str) -> UserInput {
        UserInput::Text { text: text.into(), text_elements: Vec::new() }
    }

    fn named(name: &str, path: &str) -> UserInput {
        UserInput::Skill { name: name.into(), path: path.into() }
    }

    fn paths(skills: &[Skill], input: &[UserInput]) -> Vec<String> {
        select(skills, input, &HashSet::from(["calendar".into()])).iter().map(|skill| skill.path_text()).collect()
    }

    fn all() -> Vec<Skill> {
        let mut off = skill("off", "/off");
        off.enabled = false;
        vec![
            skill("alpha", "/a"),
            skill("beta", "/b"),
            skill("calendar", "/c"),
            skill("path", "/p"),
            skill("p:sk", "/ps"),
            skill("twin", "/t1"),
            skill("twin", "/t2"),
            off,
        ]
    }

    fn check(input: &str, expected: &[&str]) {
        assert_eq!(paths(&all(), &[text(input)]), expected, "{input}");
    }

    #[test]
    fn plain_names_are_taken_whole() {
        check("use $beta and $alpha, $alpha.", &["/a", "/b"]);
        check("$alphax $alpha: $alpha-1 $Alpha $ alpha", &[]);
        check("($alpha)", &["/a"]);
        check("$p:sk!", &["/ps"]);
        check("$off $missing", &[]);
    }

    #[test]
    fn variables_apps_and_ambiguous_names_are_not_selected() {
        check("echo $PATH $path $HOME", &[]);
        check("$calendar", &[]);
        check("$twin", &[]);
        check("[$twin](/t2)", &["/t2"]);
        check("[$calendar](/c)", &["/c"]);
    }

    #[test]
    fn links_select_by_path_only_and_come_first() {
        check("$alpha and [$beta](skill:///b)", &["/b", "/a"]);
        check("[$alpha](/wrong)", &[]);
        check("[$alpha](app://x) [$alpha]", &["/a"]);
        check("[$beta] ( /b )", &["/b"]);
        check("[$alpha](/b", &["/a"]);
    }

    #[test]
    fn skill_inputs_come_first_and_take_their_name() {
        assert_eq!(paths(&all(), &[text("$alpha"), named("x", "/b")]), ["/b", "/a"]);
        assert_eq!(paths(&all(), &[text("$alpha"), named("alpha", "/wrong")]), [""; 0]);
        assert_eq!(paths(&all(), &[named("off", "/off"), named("alpha", "/a"), named("alpha", "/a")]), ["/a"]);
    }

    proptest! {
        #[test]
        fn any_text_has_mentions_without_sigils(input in "([$@\\[\\]() a-z:/]|\\PC){0,100}") {
            let mentions = Mentions::of(&input, '$');
            prop_assert!(mentions.names.iter().all(|name| !name.is_empty() && name.chars().all(is_name)));
        }
    }
}
