//! Apps that a user names in messages.

use std::collections::BTreeSet;

use loomd_protocol::UserInput;

use crate::info::slug;

/// The most names that are kept. More are ignored.
const MAX: usize = 256;

/// What was named so far: ids by mentions of `app://<id>`, slugs of names by `$<slug>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    ids: BTreeSet<String>,
    slugs: BTreeSet<String>,
}

impl Mentions {
    /// Adds what input names. Returns whether anything is new.
    pub fn add(&mut self, input: &[UserInput]) -> bool {
        let before = self.ids.len() + self.slugs.len();
        for part in input {
            match part {
                UserInput::Mention { path, .. } => self.add_id(path),
                UserInput::Text { text, .. } => self.add_text(text),
                _ => {}
            }
        }
        self.ids.len() + self.slugs.len() > before
    }

    /// Whether an app was named.
    pub fn names(&self, id: &str, name: &str) -> bool {
        self.ids.contains(id) || self.slugs.contains(&slug(name))
    }

    fn add_id(&mut self, path: &str) {
        if let Some(id) = path.strip_prefix("app://").filter(|id| !id.is_empty())
            && self.ids.len() < MAX
        {
            self.ids.insert(id.into());
        }
    }

    fn add_text(&mut self, text: &str) {
        let is_part = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
        for (at, _) in text.match_indices('$') {
            let rest = &text[at + 1..];
            let word = rest.find(|char| !is_part(char)).map_or(rest, |end| &rest[..end]);
            if !word.is_empty() && self.slugs.len() < MAX {
                self.slugs.insert(word.to_ascii_lowercase());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_is_named_by_its_path_or_its_slug_as_a_word() {
        let named = |input: UserInput| {
            let mut mentions = Mentions::default();
            mentions.add(&[input]);
            mentions.names("beta", "Beta App")
        };
        let text = |text: &str| UserInput::Text { text: text.into(), text_elements: Vec::new() };
        assert!(named(text("use $beta-app now")));
        assert!(named(text("[$Beta-App](app://beta)")));
        for other in ["use $beta-apps", "beta-app", "$ beta-app", "$beta", "$"] {
            assert!(!named(text(other)), "{other}");
        }
        let mention = |path: &str| UserInput::Mention { name: "x".into(), path: path.into() };
        assert!(named(mention("app://beta")));
        assert!(!named(mention("plugin://beta")));
    }

    #[test]
    fn what_was_named_stays_named() {
        let mut mentions = Mentions::default();
        let text = |text: &str| [UserInput::Text { text: text.into(), text_elements: Vec::new() }];
        assert!(mentions.add(&text("$a")));
        assert!(!mentions.add(&text("$a again")));
        assert!(!mentions.add(&text("nothing")));
        assert!(mentions.names("x", "A"));
    }
}
