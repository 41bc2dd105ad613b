//! Apps that a user names in a message.

use loomd_protocol::UserInput;

use crate::info::slug;

/// Whether input names an app: by a mention of `app://<id>`, or by `$` and the slug of its name.
pub fn mentioned(input: &[UserInput], id: &str, name: &str) -> bool {
    let slug = slug(name);
    input.iter().any(|part| match part {
        UserInput::Mention { path, .. } => path.strip_prefix("app://") == Some(id),
        UserInput::Text { text, .. } => !slug.is_empty() && names(text, &slug),
        _ => false,
    })
}

/// Whether a text has `$slug` as a word.
fn names(text: &str, slug: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
    text.match_indices('$').any(|(at, _)| {
        let rest = &text[at + 1..];
        let word = rest.find(|char| !is_part(char)).map_or(rest, |end| &rest[..end]);
        word.eq_ignore_ascii_case(slug)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_is_named_by_its_path_or_its_slug_as_a_word() {
        let text = |text: &str| [UserInput::Text { text: text.into(), text_elements: Vec::new() }];
        assert!(mentioned(&text("use $beta-app now"), "beta", "Beta App"));
        assert!(mentioned(&text("[$beta-app](app://beta)"), "beta", "Beta App"));
        for other in ["use $beta-apps", "beta-app", "$ beta-app", "$beta"] {
            assert!(!mentioned(&text(other), "beta", "Beta App"), "{other}");
        }
        let mention = |path: &str| [UserInput::Mention { name: "x".into(), path: path.into() }];
        assert!(mentioned(&mention("app://beta"), "beta", "Beta App"));
        assert!(!mentioned(&mention("plugin://beta"), "beta", "Beta App"));
        assert!(!mentioned(&text("$"), "x", "!!"));
    }
}
