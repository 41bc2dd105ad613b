//! The directory of apps, page by page.

use std::collections::BTreeMap;

use loomd_protocol::{AppBranding, AppInfo, AppMetadata, JsonValue};
use serde::Deserialize;

use crate::account::BoxFuture;
use crate::info::{self, is_hidden};

/// Bounds against a directory that never ends.
const MAX_PAGES: usize = 200;
const MAX_APPS: usize = 20_000;

/// A response of the backend, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendResponse {
    pub status: u16,
    /// The status with its reason, such as `404 Not Found`.
    pub status_text: String,
    pub body: Vec<u8>,
}

/// The backend of the account.
pub trait Backend: Send + Sync {
    /// Gets a path below the backend's base URL. The error says what failed, without secrets.
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<BackendResponse, String>>;
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    apps: Vec<JsonValue>,
    #[serde(default, alias = "nextToken")]
    next_token: Option<String>,
}

/// An app of the directory. What is not understood of one is left out.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default, alias = "logo_url")]
    logo_url: Option<String>,
    #[serde(default, alias = "logo_url_dark")]
    logo_url_dark: Option<String>,
    #[serde(default, alias = "distribution_channel")]
    distribution_channel: Option<String>,
    #[serde(default)]
    branding: Option<JsonValue>,
    #[serde(default, alias = "app_metadata")]
    app_metadata: Option<JsonValue>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    visibility: Option<String>,
}

/// Loads the directory: the public one, and that of the workspace, whose failure is ignored.
pub(crate) async fn load(backend: &dyn Backend, workspace: bool) -> Result<Vec<AppInfo>, String> {
    let mut apps = BTreeMap::new();
    read(backend, "/connectors/directory/list?tier=categorized&external_logos=true", &mut apps).await?;
    if workspace {
        let path = "/connectors/directory/list_workspace?external_logos=true";
        if let Err(error) = read(backend, path, &mut apps).await {
            tracing::warn!(error, "the apps of the workspace could not be listed");
        }
    }
    Ok(apps.into_values().collect())
}

async fn read(backend: &dyn Backend, path: &str, apps: &mut BTreeMap<String, AppInfo>) -> Result<(), String> {
    let mut token: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let page = match &token {
            Some(token) => get(backend, &format!("{path}&token={}", escaped(token))).await?,
            None => get(backend, path).await?,
        };
        for app in page.apps {
            add(app, apps);
        }
        token = page.next_token.filter(|next| !next.is_empty() && token.as_ref() != Some(next));
        if token.is_none() || apps.len() >= MAX_APPS {
            return Ok(());
        }
    }
    tracing::warn!("the directory of apps has too many pages: the rest is left out");
    Ok(())
}

async fn get(backend: &dyn Backend, path: &str) -> Result<Page, String> {
    let response = backend.get(path).await?;
    if !(200..300).contains(&response.status) {
        let body = String::from_utf8_lossy(&response.body);
        let body: String = body.chars().take(1000).collect();
        return Err(format!("Request failed with status {}: {body}", response.status_text));
    }
    serde_json::from_slice(&response.body).map_err(|error| format!("Failed to parse JSON response: {error}"))
}

/// Adds an app. Of one that comes again, what was missing is taken.
fn add(app: JsonValue, apps: &mut BTreeMap<String, AppInfo>) {
    let Ok(app) = serde_json::from_value::<Listed>(app) else { return };
    let visible = app.visibility.as_deref() != Some("HIDDEN");
    if app.id.is_empty() || is_hidden(&app.id) || !visible || apps.len() >= MAX_APPS {
        return;
    }
    let known =
        apps.entry(app.id.clone()).or_insert_with(|| info::new(&app.id, app.name.as_deref().unwrap_or_default()));
    fn fill<T>(slot: &mut Option<T>, value: Option<T>) {
        if slot.is_none() {
            *slot = value;
        }
    }
    fill(&mut known.description, app.description.filter(|text| !text.trim().is_empty()));
    fill(&mut known.logo_url, app.logo_url);
    fill(&mut known.logo_url_dark, app.logo_url_dark);
    fill(&mut known.distribution_channel, app.distribution_channel);
    fill(&mut known.branding, app.branding.and_then(decode::<AppBranding>));
    fill(&mut known.app_metadata, app.app_metadata.and_then(decode::<AppMetadata>));
    fill(&mut known.labels, app.labels);
}

fn decode<T: serde::de::DeserializeOwned>(value: JsonValue) -> Option<T> {
    serde_json::from_value(value).ok()
}

/// A token as a value of a query.
fn escaped(token: &str) -> String {
    let mut escaped = String::with_capacity(token.len());
    for byte in token.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => escaped.push(byte.into()),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;

    /// Answers paths in turn and notes them.
    struct Pages {
        answers: Mutex<Vec<(u16, JsonValue)>>,
        seen: Arc<Mutex<Vec<String>>>,
    }

    impl Backend for Pages {
        fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<BackendResponse, String>> {
            self.seen.lock().push(path.into());
            let (status, body) = self.answers.lock().remove(0);
            let status_text = format!("{status} Text");
            Box::pin(std::future::ready(Ok(BackendResponse { status, status_text, body: body.to_string().into() })))
        }
    }

    async fn list(
        answers: &[(u16, JsonValue)],
        workspace: bool,
    ) -> (Result<Vec<(String, String)>, String>, Vec<String>) {
        let seen = Arc::default();
        let pages = Pages { answers: Mutex::new(answers.to_vec()), seen: Arc::clone(&seen) };
        let apps = load(&pages, workspace).await;
        let apps = apps.map(|apps| apps.into_iter().map(|app| (app.id, app.name)).collect());
        (apps, seen.lock().clone())
    }

    #[tokio::test]
    async fn all_pages_are_read_and_bad_entries_skipped() {
        let first = json!({ "apps": [{ "id": "a", "name": " A " }, { "id": 3 }, { "id": "connector_openai_x" }],
            "next_token": "t/1" });
        let second = json!({ "apps": [{ "id": "b" }, { "id": "h", "visibility": "HIDDEN" }, { "id": "a", "name": "Z" }],
            "nextToken": null });
        let (apps, seen) = list(&[(200, first), (200, second)], false).await;
        assert_eq!(apps, Ok(vec![("a".into(), "A".into()), ("b".into(), "b".into())]));
        assert!(seen[1].ends_with("&token=t%2F1"), "{seen:?}");
    }

    #[tokio::test]
    async fn a_page_that_names_itself_as_the_next_ends_the_list() {
        let page = json!({ "apps": [{ "id": "a" }], "next_token": "same" });
        let (apps, seen) = list(&[(200, page.clone()), (200, page)], false).await;
        assert_eq!((apps.map(|apps| apps.len()), seen.len()), (Ok(1), 2));
    }

    #[tokio::test]
    async fn only_a_failure_of_the_public_directory_counts() {
        let apps = json!({ "apps": [{ "id": "a" }] });
        let (listed, seen) = list(&[(200, apps), (500, json!({}))], true).await;
        assert_eq!((listed.map(|apps| apps.len()), seen.len()), (Ok(1), 2));
        let (failed, _) = list(&[(500, json!({ "oops": 1 }))], true).await;
        assert_eq!(failed, Err(r#"Request failed with status 500 Text: {"oops":1}"#.into()));
    }
}
