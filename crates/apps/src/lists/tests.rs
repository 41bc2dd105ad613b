//! What clients are sent and answered, whichever list arrives first.

use std::sync::atomic::{AtomicUsize, Ordering};

use loomd_mcp::Annotations;
use serde_json::json;
use tokio::sync::Notify;

use super::*;
use crate::directory::BackendResponse;

/// A backend whose directory and tools arrive when they are let through.
struct World {
    directory: Mutex<Result<Vec<&'static str>, u16>>,
    tools: Mutex<Result<Vec<&'static str>, String>>,
    /// Waited for before the directory arrives.
    gate: Option<Notify>,
    asked: AtomicUsize,
}

impl World {
    fn new(directory: &[&'static str], tools: &[&'static str]) -> Arc<Self> {
        Self::gated(directory, tools, false)
    }

    fn gated(directory: &[&'static str], tools: &[&'static str], gated: bool) -> Arc<Self> {
        Arc::new(Self {
            directory: Mutex::new(Ok(directory.to_vec())),
            tools: Mutex::new(Ok(tools.to_vec())),
            gate: gated.then(Notify::new),
            asked: AtomicUsize::new(0),
        })
    }

    fn sources(self: &Arc<Self>, account: &str) -> Sources {
        let account = Account { account_id: Some(account.into()), chatgpt_user_id: None, is_workspace_account: false };
        Sources { account, backend: Arc::clone(self) as _, tools: Arc::clone(self) as _ }
    }
}

impl Backend for World {
    fn get<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<BackendResponse, String>> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if let Some(gate) = &self.gate {
                gate.notified().await;
            }
            let (status, body) = match &*self.directory.lock() {
                Ok(ids) => (200, json!({ "apps": ids.iter().map(|id| json!({ "id": id })).collect::<Vec<_>>() })),
                Err(status) => (*status, json!({})),
            };
            Ok(BackendResponse { status, status_text: status.to_string(), body: body.to_string().into() })
        })
    }
}

impl AppTools for World {
    fn tools(&self, _: bool) -> BoxFuture<'_, Result<Vec<Arc<Tool>>, String>> {
        let tool = |id: &&str| {
            let meta = json!({ "connector_id": id, "connector_name": id, "connector_description": "about it" });
            Arc::new(Tool {
                name: format!("{id}_do"),
                title: None,
                description: None,
                input_schema: json!({}),
                annotations: Annotations::default(),
                meta: meta.as_object().cloned(),
                raw: Default::default(),
            })
        };
        let tools = self.tools.lock().as_ref().map(|ids| ids.iter().map(tool).collect()).map_err(Clone::clone);
        Box::pin(std::future::ready(tools))
    }
}

fn ids(apps: &[AppInfo]) -> Vec<String> {
    apps.iter().map(|app| format!("{}{}", app.id, if app.is_accessible { "+" } else { "" })).collect()
}

/// The answer, and the updates.
async fn list(
    lists: &AppLists,
    sources: &Sources,
    refetch: bool,
) -> (Result<Vec<String>, ListError>, Vec<Vec<String>>) {
    let updates = Mutex::new(Vec::new());
    let settings = AppSettings { plugins: BTreeMap::from([("a".into(), vec!["Plug".into()])]), ..Default::default() };
    let answer = lists
        .list(sources, &settings, refetch, |apps| {
            let named = |app: &AppInfo| app.plugin_display_names.len() == usize::from(app.id == "a");
            assert!(apps.iter().all(named), "{apps:?}");
            updates.lock().push(ids(&apps));
            std::future::ready(())
        })
        .await;
    (answer.map(|apps| ids(&apps)), updates.into_inner())
}

fn owned(lists: &[&[&str]]) -> Vec<Vec<String>> {
    lists.iter().map(|list| list.iter().map(|id| (*id).to_owned()).collect()).collect()
}

#[tokio::test]
async fn accessible_apps_come_first_and_those_outside_of_the_directory_only_in_between() {
    let world = World::gated(&["a", "b"], &["b", "c"], true);
    let (lists, sources) = (AppLists::default(), world.sources("me"));
    let (answer, ()) = tokio::join!(list(&lists, &sources, false), async {
        tokio::task::yield_now().await;
        world.gate.as_ref().unwrap().notify_one();
    });
    assert_eq!(answer, (Ok(vec!["b+".into(), "a".into()]), owned(&[&["b+", "c+"], &["b+", "a"]])));
}

#[tokio::test(start_paused = true)]
async fn lists_are_kept_for_an_hour_and_per_account() {
    let world = World::new(&["a"], &[]);
    let (lists, sources) = (AppLists::default(), world.sources("me"));
    assert_eq!(list(&lists, &sources, false).await, (Ok(vec!["a".into()]), owned(&[&["a"]])));
    *world.directory.lock() = Ok(vec!["a", "z"]);
    // Unchanged lists are not sent again.
    assert_eq!(list(&lists, &sources, false).await, (Ok(vec!["a".into()]), owned(&[])));
    assert_eq!(list(&lists, &world.sources("other"), false).await.0, Ok(vec!["a".into(), "z".into()]));
    assert_eq!(list(&lists, &sources, false).await.0, Ok(vec!["a".into(), "z".into()]));
    *world.directory.lock() = Ok(vec!["y"]);
    tokio::time::advance(FRESH).await;
    assert_eq!(list(&lists, &sources, false).await.0, Ok(vec!["y".into()]));
}

#[tokio::test]
async fn a_refetch_that_fails_keeps_what_was_known() {
    let world = World::new(&["a"], &["a"]);
    let (lists, sources) = (AppLists::default(), world.sources("me"));
    let first = list(&lists, &sources, false).await.0;
    *world.directory.lock() = Err(500);
    let failed = list(&lists, &sources, true).await.0;
    assert_eq!(failed, Err(ListError::Directory("Request failed with status 500: {}".into())));
    assert_eq!(list(&lists, &sources, false).await.0, first);
    *world.directory.lock() = Ok(vec!["b"]);
    *world.tools.lock() = Err("no server".into());
    let failed = list(&lists, &sources, true).await.0;
    assert_eq!(failed.map_err(|error| error.to_string()), Err("failed to load accessible apps: no server".into()));
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_never_comes_is_given_up() {
    let world = World::gated(&[], &[], true);
    let (answer, _) = list(&AppLists::default(), &world.sources("me"), false).await;
    assert_eq!(answer, Err(ListError::TimedOut));
    assert_eq!(ListError::TimedOut.to_string(), "timed out waiting for app lists after 90 seconds");
}

#[tokio::test]
async fn requests_at_the_same_time_load_once() {
    let world = World::gated(&["a"], &[], true);
    let (lists, sources) = (AppLists::default(), world.sources("me"));
    let (first, second, ()) = tokio::join!(list(&lists, &sources, false), list(&lists, &sources, false), async {
        tokio::task::yield_now().await;
        world.gate.as_ref().unwrap().notify_one();
    });
    assert_eq!((first.0, second.0), (Ok(vec!["a".into()]), Ok(vec!["a".into()])));
    assert_eq!(world.asked.load(Ordering::Relaxed), 1);
}

#[test]
fn pages_end_with_the_list_and_bad_cursors_are_refused() {
    let apps = || vec![crate::info::new("a", "a"), crate::info::new("b", "b")];
    let page = |cursor: Option<&str>, limit| page(apps(), cursor, limit).map(|(apps, next)| (ids(&apps), next));
    assert_eq!(page(None, None), Ok((vec!["a".into(), "b".into()], None)));
    assert_eq!(page(None, Some(0)), Ok((vec!["a".into()], Some("1".into()))));
    assert_eq!(page(Some("1"), Some(1)), Ok((vec!["b".into()], None)));
    assert_eq!(page(Some("2"), Some(1)), Ok((vec![], None)));
    assert_eq!(page(Some("-1"), None), Err(PageError::Invalid("-1".into())));
    assert_eq!(page(Some("3"), None), Err(PageError::Beyond { cursor: 3, total: 2 }));
}
