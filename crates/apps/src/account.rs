//! The account whose apps are meant.

use std::pin::Pin;
use std::sync::Arc;

use loomd_protocol::AppInfo;
use serde::Serialize;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A ChatGPT account. Caches belong to one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Account {
    pub account_id: Option<String>,
    pub chatgpt_user_id: Option<String>,
    pub is_workspace_account: bool,
}

/// Where the signed-in account is known.
pub trait AppsAccount: Send + Sync {
    /// `None` unless a ChatGPT account is signed in. May read a file the first time.
    fn account(&self) -> Option<Account>;

    /// The directory, as far as it has been loaded.
    fn known_directory(&self) -> Option<Arc<[AppInfo]>>;

    /// The directory, loaded unless it is known. `None` when that fails.
    fn directory(&self) -> BoxFuture<'_, Option<Arc<[AppInfo]>>>;
}
