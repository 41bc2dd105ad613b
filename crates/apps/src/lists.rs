//! The lists of `app/list`: the directory and what the account can use of it, cached for an hour.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use loomd_mcp::Tool;
use loomd_protocol::AppInfo;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::account::{Account, BoxFuture};
use crate::connector::accessible;
use crate::directory::{self, Backend};
use crate::rules::AppRules;

/// How long lists are used.
const FRESH: Duration = Duration::from_secs(3600);

/// How long a request may wait for the lists.
const LOADING: Duration = Duration::from_secs(90);

/// The tools of the apps.
pub trait AppTools: Send + Sync {
    /// The tools; with `refetch` as they are now, else as they were when they were last listed. The error says why there
    /// are none.
    fn tools(&self, refetch: bool) -> BoxFuture<'_, Result<Vec<Arc<Tool>>, String>>;
}

/// Where the lists of one account come from.
pub struct Sources {
    pub account: Account,
    pub backend: Arc<dyn Backend>,
    pub tools: Arc<dyn AppTools>,
}

/// What the configuration says of apps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AppSettings {
    pub rules: AppRules,
    /// The display names of the plugins that an app is part of, by its id.
    pub plugins: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    #[error("failed to list apps: {0}")]
    Directory(String),
    #[error("failed to load accessible apps: {0}")]
    Accessible(String),
    #[error("timed out waiting for app lists after {} seconds", LOADING.as_secs())]
    TimedOut,
}

type Directory = Arc<[AppInfo]>;
type Accessible = Arc<BTreeMap<String, AppInfo>>;

/// The lists of a server.
#[derive(Default)]
pub struct AppLists {
    cache: Mutex<Option<Cached>>,
    /// Held by the request that loads, so that others wait for its result.
    loading: tokio::sync::Mutex<()>,
    /// The list that clients were sent last.
    sent: tokio::sync::Mutex<Option<Vec<AppInfo>>>,
}

struct Cached {
    account: Account,
    directory: Option<(Instant, Directory)>,
    accessible: Option<(Instant, Accessible)>,
}

impl AppLists {
    /// Returns all apps. `updated` is called whenever there is more to show than clients were sent last. With `refetch`
    /// both lists are loaded again; those of before are replaced only by what was loaded.
    pub async fn list<F: Future<Output = ()>>(
        &self,
        sources: &Sources,
        settings: &AppSettings,
        refetch: bool,
        updated: impl Fn(Vec<AppInfo>) -> F,
    ) -> Result<Vec<AppInfo>, ListError> {
        let listing = async {
            let _loading = match (refetch, self.fresh(&sources.account)) {
                (false, (Some(_), Some(_))) => None,
                _ => Some(self.loading.lock().await),
            };
            self.load(sources, settings, refetch, &updated).await
        };
        tokio::time::timeout(LOADING, listing).await.unwrap_or(Err(ListError::TimedOut))
    }

    /// The directory of an account, as far as it has been loaded.
    pub fn known_directory(&self, account: &Account) -> Option<Arc<[AppInfo]>> {
        self.fresh(account).0
    }

    /// The directory of an account, loaded unless it is known.
    pub async fn directory(&self, account: &Account, backend: &dyn Backend) -> Result<Arc<[AppInfo]>, ListError> {
        if let Some(known) = self.known_directory(account) {
            return Ok(known);
        }
        let loaded = directory::load(backend, account.is_workspace_account).await;
        let loaded: Directory = loaded.map_err(ListError::Directory)?.into();
        self.keep(account, |cached| cached.directory = Some((Instant::now(), Arc::clone(&loaded))));
        Ok(loaded)
    }

    async fn load<F: Future<Output = ()>>(
        &self,
        sources: &Sources,
        settings: &AppSettings,
        refetch: bool,
        updated: &impl Fn(Vec<AppInfo>) -> F,
    ) -> Result<Vec<AppInfo>, ListError> {
        let (known_directory, known_accessible) = self.fresh(&sources.account);
        let loading_directory = async {
            if !refetch {
                return self.directory(&sources.account, &*sources.backend).await;
            }
            let loaded = directory::load(&*sources.backend, sources.account.is_workspace_account).await;
            let loaded: Directory = loaded.map_err(ListError::Directory)?.into();
            self.keep(&sources.account, |cached| cached.directory = Some((Instant::now(), Arc::clone(&loaded))));
            Ok(loaded)
        };
        let loading_tools = async {
            if let Some(known) = known_accessible.as_ref().filter(|_| !refetch) {
                return Ok(Arc::clone(known));
            }
            let tools = sources.tools.tools(refetch).await.map_err(ListError::Accessible)?;
            let loaded: Accessible = Arc::new(accessible(tools.iter().map(|tool| &**tool)));
            self.keep(&sources.account, |cached| cached.accessible = Some((Instant::now(), Arc::clone(&loaded))));
            Ok(loaded)
        };
        tokio::pin!(loading_directory, loading_tools);
        let (directory, accessible) = tokio::select! {
            directory = &mut loading_directory => (directory?, loading_tools.await?),
            accessible = &mut loading_tools => {
                let accessible = accessible?;
                if !accessible.is_empty() {
                    // The directory of before shows more than none.
                    let before = known_directory.as_deref().unwrap_or_default();
                    self.send(merged(before, &accessible, settings, true), updated).await;
                }
                (loading_directory.await?, accessible)
            }
        };
        let apps = merged(&directory, &accessible, settings, false);
        self.send(apps.clone(), updated).await;
        Ok(apps)
    }

    /// The lists of an account that are fresh enough.
    fn fresh(&self, account: &Account) -> (Option<Directory>, Option<Accessible>) {
        let cache = self.cache.lock();
        let Some(cached) = cache.as_ref().filter(|cached| cached.account == *account) else { return (None, None) };
        fn fresh<T: Clone>(list: &Option<(Instant, T)>) -> Option<T> {
            list.as_ref().filter(|(at, _)| at.elapsed() < FRESH).map(|(_, list)| list.clone())
        }
        (fresh(&cached.directory), fresh(&cached.accessible))
    }

    /// Changes what is kept for an account. What was kept for another one is dropped.
    fn keep(&self, account: &Account, change: impl FnOnce(&mut Cached)) {
        let mut cache = self.cache.lock();
        let cached = match cache.take().filter(|cached| cached.account == *account) {
            Some(cached) => cached,
            None => Cached { account: account.clone(), directory: None, accessible: None },
        };
        change(cache.insert(cached));
    }

    /// Sends a list to clients unless it is the one that they were sent last.
    async fn send<F: Future<Output = ()>>(&self, apps: Vec<AppInfo>, updated: &impl Fn(Vec<AppInfo>) -> F) {
        let mut sent = self.sent.lock().await;
        if sent.as_ref() != Some(&apps) {
            *sent = Some(apps.clone());
            updated(apps).await;
        }
    }
}

/// Returns the apps of the directory, those that are accessible first, then by name. `extra` adds accessible apps that
/// the directory does not have.
fn merged(
    directory: &[AppInfo],
    accessible: &BTreeMap<String, AppInfo>,
    settings: &AppSettings,
    extra: bool,
) -> Vec<AppInfo> {
    let mut apps: Vec<AppInfo> = directory.to_vec();
    for app in &mut apps {
        if let Some(known) = accessible.get(&app.id) {
            app.is_accessible = true;
            if app.description.is_none() {
                app.description.clone_from(&known.description);
            }
        }
    }
    if extra {
        let missing = accessible.values().filter(|app| directory.iter().all(|listed| listed.id != app.id));
        apps.extend(missing.cloned());
    }
    for app in &mut apps {
        app.is_enabled = settings.rules.is_enabled(&app.id);
        app.plugin_display_names = settings.plugins.get(&app.id).cloned().unwrap_or_default();
    }
    apps.sort_by(|a, b| (!a.is_accessible, &a.name, &a.id).cmp(&(!b.is_accessible, &b.name, &b.id)));
    apps
}

/// Why there is no such page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    #[error("invalid cursor: {0}")]
    Invalid(String),
    #[error("cursor {cursor} exceeds total apps {total}")]
    Beyond { cursor: usize, total: usize },
}

/// Returns one page of a list, and the cursor of the next.
pub fn page(
    mut apps: Vec<AppInfo>,
    cursor: Option<&str>,
    limit: Option<u32>,
) -> Result<(Vec<AppInfo>, Option<String>), PageError> {
    let total = apps.len();
    let start = match cursor {
        Some(cursor) => cursor.parse().map_err(|_| PageError::Invalid(cursor.into()))?,
        None => 0,
    };
    if start > total {
        return Err(PageError::Beyond { cursor: start, total });
    }
    let limit = limit.map_or(total, |limit| usize::try_from(limit.max(1)).unwrap_or(usize::MAX));
    let end = start.saturating_add(limit).min(total);
    apps.truncate(end);
    apps.drain(..start);
    Ok((apps, (end < total).then(|| end.to_string())))
}

#[cfg(test)]
mod tests;
