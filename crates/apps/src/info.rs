//! An app as clients see it.

use loomd_protocol::AppInfo;

/// Apps that are part of others and not shown by themselves.
const HIDDEN_PREFIX: &str = "connector_openai_";

pub(crate) fn is_hidden(id: &str) -> bool {
    id.starts_with(HIDDEN_PREFIX)
}

/// An app of which only the id and the name are known.
pub(crate) fn new(id: &str, name: &str) -> AppInfo {
    let trimmed = name.trim();
    AppInfo {
        id: id.into(),
        name: if trimmed.is_empty() { id.into() } else { trimmed.into() },
        description: None,
        logo_url: None,
        logo_url_dark: None,
        distribution_channel: None,
        branding: None,
        app_metadata: None,
        labels: None,
        install_url: Some(install_url(id, trimmed)),
        is_accessible: false,
        is_enabled: true,
        plugin_display_names: Vec::new(),
    }
}

/// Returns the page on which an app can be installed.
pub fn install_url(id: &str, name: &str) -> String {
    let slug = slug(name);
    let slug = if slug.is_empty() { "app" } else { &slug };
    format!("https://chatgpt.com/apps/{slug}/{id}")
}

/// Returns the name in lower case, with hyphens for all but letters and digits.
pub fn slug(name: &str) -> String {
    let slug: String = name
        .trim()
        .chars()
        .map(|char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '-' })
        .collect();
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_install_page_is_made_of_the_name_and_the_id() {
        assert_eq!(install_url("beta", "Beta App"), "https://chatgpt.com/apps/beta-app/beta");
        assert_eq!(install_url("w", " We--ird & Näme!! "), "https://chatgpt.com/apps/we--ird---n-me/w");
        assert_eq!(install_url("x", ""), "https://chatgpt.com/apps/app/x");
        assert_eq!(new("noname", " ").name, "noname");
    }
}
