//! `session_meta`: the identity and origin of a thread. The first one of a file is its identity; a fork carries its source's
//! as a later line.

use jiff::Timestamp;
use loomd_protocol::{Budget, DynamicToolSpec, GitInfo, SessionSource, SubAgentSource};
use serde::{Deserialize, Serialize};

use super::Source;
use crate::ThreadId;

/// Payload of `session_meta`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionMeta {
    pub id: ThreadId,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub forked_from_id: Option<ThreadId>,
    /// The thread that a fork stays attached to. The reference ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub attached_to: Option<ThreadId>,
    /// The thread at the root of its tree of agents; absent when that is itself.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub session_id: Option<ThreadId>,
    /// A label that the client gave the thread.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub thread_source: Option<String>,
    /// When the thread was created, RFC 3339.
    pub timestamp: String,
    pub cwd: String,
    /// The client's name.
    pub originator: String,
    /// The version that created the thread.
    pub cli_version: String,
    #[serde(default)]
    pub source: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_nickname: Option<String>,
    #[serde(default, alias = "agent_type", skip_serializing_if = "Option::is_none")]
    pub agent_role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_path: Option<String>,
    #[serde(default)]
    pub model_provider: Option<String>,
    #[serde(default)]
    pub base_instructions: Option<BaseInstructions>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub dynamic_tools: Option<Vec<DynamicToolSpec>>,
    /// `disabled` when no memories are to be made of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mode: Option<String>,
    /// The preview of a thread that began with a history of response items, which mean nothing to readers of
    /// events. The reference ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub git: Option<StoredGit>,
    /// What the thread may spend. The reference ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::or_none")]
    pub budget: Option<Budget>,
    /// Labels that a node must have to run the thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<String>,
}

/// The instructions that stand before everything else in the model's context.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaseInstructions {
    pub text: String,
}

/// The git state when the thread was created, as the file spells it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredGit {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_url: Option<String>,
}

impl StoredGit {
    /// The wire's spelling; `None` when nothing is known.
    pub fn to_wire(&self) -> Option<GitInfo> {
        let info = GitInfo {
            sha: self.commit_hash.clone(),
            branch: self.branch.clone(),
            origin_url: self.repository_url.clone(),
        };
        (info.sha.is_some() || info.branch.is_some() || info.origin_url.is_some()).then_some(info)
    }
}

impl SessionMeta {
    /// When the thread was created; `None` when the text is no time.
    pub fn created_at(&self) -> Option<Timestamp> {
        self.timestamp.parse().ok()
    }

    /// The wire's source: the nickname and role recorded here stand over those inside a spawned
    /// sub-agent's source.
    pub fn wire_source(&self) -> SessionSource {
        let mut source = self.source.to_wire();
        if let SessionSource::SubAgent(SubAgentSource::ThreadSpawn { agent_nickname, agent_role, .. }) = &mut source {
            if self.agent_nickname.is_some() {
                agent_nickname.clone_from(&self.agent_nickname);
            }
            if self.agent_role.is_some() {
                agent_role.clone_from(&self.agent_role);
            }
        }
        source
    }

    /// The thread whose agent started this one.
    pub fn parent(&self) -> Option<ThreadId> {
        match &self.source {
            Source::SubAgent(SubAgentSource::ThreadSpawn { parent_thread_id, .. }) => parent_thread_id.0.parse().ok(),
            _ => None,
        }
    }

    /// Nickname and role of a spawned sub-agent; nothing for any other thread.
    pub fn agent_names(&self) -> (Option<String>, Option<String>) {
        agent_names(&self.wire_source())
    }
}

pub(crate) fn agent_names(source: &SessionSource) -> (Option<String>, Option<String>) {
    match source {
        SessionSource::SubAgent(SubAgentSource::ThreadSpawn { agent_nickname, agent_role, .. }) => {
            (agent_nickname.clone(), agent_role.clone())
        }
        _ => (None, None),
    }
}
