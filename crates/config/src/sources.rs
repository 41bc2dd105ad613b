//! Where configuration comes from.

use std::path::PathBuf;
use std::sync::Arc;

use loomd_protocol::AbsolutePathBuf;

use crate::{Enablement, LoadRequest, ManagedRequirements, Overrides};

/// The sources of configuration; the same for the whole life of a process.
pub struct ConfigSources {
    pub home: AbsolutePathBuf,
    pub system_file: Option<AbsolutePathBuf>,
    pub user_home: Option<PathBuf>,
    pub flags: Overrides,
    pub live: LiveSources,
}

/// The part of configuration that changes while the process runs and is in no file.
#[derive(Default)]
pub struct LiveSources {
    /// What the organisation requires of its members.
    pub managed: Arc<ManagedRequirements>,
    /// Features that clients switched.
    pub enablement: Enablement,
}

impl ConfigSources {
    /// Returns a request for the configuration without a working directory. It is loaded afresh for each request of a
    /// client that needs it.
    pub fn request(&self) -> LoadRequest<'_> {
        LoadRequest {
            system_file: self.system_file.as_ref(),
            user_home: self.user_home.as_deref(),
            managed: Some(&self.live.managed),
            enablement: Some(&self.live.enablement),
            ..LoadRequest::new(&self.home, &self.flags)
        }
    }
}
