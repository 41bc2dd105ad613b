//! Decides whether and how an action of a tool may be taken: by rules, approval policy and sandbox, by an approval or
//! by the reviewer. Keeps what was allowed for the rest of the thread.

mod command;
mod cx;
mod denial;
mod hosts;
mod patch;
mod reviewer;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loomd_exec::sandbox::{Roots, Sandbox, Surroundings};
use loomd_policy::rules::{PrefixRule, Rules};
use parking_lot::Mutex;

pub(crate) use command::{Candidate, CommandOptions, CommandPermit, WantedPermissions, check_options, clear, retry};
pub(crate) use cx::ActionCx;
pub(crate) use denial::{DECLINED, Denial};
pub(crate) use hosts::{HostDecision, Hosts};
pub(crate) use patch::{PatchPermit, clear_patch, request_patch_approval};
pub(crate) use reviewer::judge;

use crate::denials::Denials;
use crate::grants::Grants;
use crate::services::Services;
use crate::turn_cx::TurnCx;

/// The rules, approvals and grants of a thread.
#[derive(Default)]
pub(crate) struct Guard {
    /// Loaded before the first command.
    rules: Mutex<Option<Arc<Rules>>>,
    /// The keys of commands and files that were approved for the session.
    approved: Mutex<HashSet<String>>,
    /// The permissions that were granted for the rest of the thread.
    grants: Mutex<Grants>,
    /// What the reviewer has denied.
    pub denials: Arc<Denials>,
    /// The decisions about hosts.
    pub hosts: Arc<Hosts>,
    /// What the roots of sandboxes resolved to when an agent of the tree first used them.
    roots: Arc<Roots>,
}

impl Guard {
    /// `roots` is shared by the agents of a tree.
    pub fn new(roots: Arc<Roots>) -> Self {
        Self { roots, ..Self::default() }
    }

    /// The rules in force. Fails when a folder of rules cannot be read; then no command may run.
    pub fn rules(&self, folders: &[PathBuf]) -> Result<Arc<Rules>, String> {
        let mut rules = self.rules.lock();
        if let Some(rules) = &*rules {
            return Ok(Arc::clone(rules));
        }
        let loaded = loomd_policy::rules::load(folders).map_err(|error| error.to_string())?;
        let loaded = Arc::new(loaded.rules);
        *rules = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    /// Adds a rule that allows commands that begin with these words.
    pub fn allow(&self, words: &[String]) {
        let mut rules = self.rules.lock();
        let mut more = rules.as_deref().cloned().unwrap_or_default();
        more.add(PrefixRule::allow(words));
        *rules = Some(Arc::new(more));
    }

    pub fn remember(&self, key: String) {
        self.approved.lock().insert(key);
    }

    pub fn is_remembered(&self, key: &str) -> bool {
        self.approved.lock().contains(key)
    }

    pub fn grant(&self, more: &Grants) {
        self.grants.lock().extend(more);
    }

    fn granted(&self) -> Grants {
        self.grants.lock().clone()
    }
}

/// Returns the sandbox of a turn with all grants; `None` when nothing has to be enforced.
pub(crate) fn sandbox(turn: &TurnCx, guard: &Guard, services: &Services) -> Option<Sandbox> {
    let surroundings = Surroundings {
        cwd: Path::new(&turn.settings.cwd),
        tmpdir: services.environment.get("TMPDIR").map(Path::new),
        home: Some(&services.home),
        roots: Some(&guard.roots),
        trusted: &turn.profile.config.config.trusted_projects(),
    };
    let confinement = turn.settings.confinement(&turn.profile);
    confinement.sandbox(surroundings, [&guard.granted(), &turn.grants()])
}
