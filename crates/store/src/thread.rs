//! A stored thread as lists and lookups show it.

use std::path::PathBuf;

use loomd_protocol::{GitInfo, Thread, ThreadHistoryMode, ThreadStatus};

use crate::ThreadId;
use crate::path::RolloutName;
use crate::rollout::SessionMeta;

/// What is known of a stored thread without reading its history.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredThread {
    /// The session metadata; instructions and tools are left out.
    pub meta: SessionMeta,
    /// The file of the thread; `None` in a store without files.
    pub path: Option<PathBuf>,
    pub archived: bool,
    /// The first user message; `None` until there is one, and such threads are not listed.
    pub preview: Option<String>,
    /// When the last record was written, in Unix seconds.
    pub updated_at: i64,
    /// The same in nanoseconds, which lists are ordered by.
    pub updated_ns: i64,
    /// The git facts in the session metadata with the changes that clients made.
    pub git_info: Option<GitInfo>,
    /// The name that was given to the thread.
    pub name: Option<String>,
}

impl StoredThread {
    pub fn id(&self) -> ThreadId {
        self.meta.id
    }

    /// When the thread was created, in Unix seconds.
    pub fn created_at(&self) -> i64 {
        created_at(&self.meta, || RolloutName::of(self.path.as_deref()?))
    }

    /// The thread as clients see it while it is not loaded, without turns. `default_provider` stands for
    /// one that was not recorded.
    pub fn to_wire(&self, default_provider: &str) -> Thread {
        let (agent_nickname, agent_role) = self.meta.agent_names();
        Thread {
            id: self.meta.id.to_string(),
            preview: self.preview.clone().unwrap_or_default(),
            ephemeral: false,
            model_provider: self.meta.model_provider.clone().unwrap_or_else(|| default_provider.to_owned()),
            created_at: self.created_at(),
            updated_at: self.updated_at,
            status: ThreadStatus::NotLoaded,
            path: self.path.as_ref().map(|path| path.to_string_lossy().into_owned()),
            cwd: self.meta.cwd.clone(),
            cli_version: self.meta.cli_version.clone(),
            source: self.meta.wire_source(),
            agent_nickname,
            agent_role,
            git_info: self.git_info.clone(),
            name: self.name.clone(),
            turns: Vec::new(),
            session_id: self.meta.session_id.unwrap_or(self.meta.id).to_string(),
            project_id: None,
            forked_from_id: self.meta.forked_from_id.map(|id| id.to_string()),
            parent_thread_id: self.meta.parent().map(|id| id.to_string()),
            history_mode: ThreadHistoryMode::default(),
            model: None,
            reasoning_effort: None,
            recency_at: Some(self.updated_at.max(self.created_at())),
            originator: Some(self.meta.originator.clone()),
            thread_source: self.meta.thread_source.clone(),
            can_accept_direct_input: None,
            environments: None,
            section: None,
            section_entered_at: None,
        }
    }
}

/// The time in the meta; a file with an unreadable one is dated by its name.
pub(crate) fn created_at(meta: &SessionMeta, name: impl FnOnce() -> Option<RolloutName>) -> i64 {
    match meta.created_at() {
        Some(time) => time.as_second(),
        None => name().map_or(0, |name| name.seconds()),
    }
}
