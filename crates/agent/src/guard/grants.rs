//! Permissions beyond the policy that the user has granted.

use std::path::PathBuf;

use loomd_exec::sandbox::Sandbox;
use loomd_protocol::{AdditionalFileSystemPermissions, AdditionalNetworkPermissions};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grants {
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    pub network: bool,
}

impl Grants {
    pub fn of(
        file_system: Option<&AdditionalFileSystemPermissions>,
        network: Option<&AdditionalNetworkPermissions>,
    ) -> Self {
        let paths = |paths: Option<&Vec<loomd_protocol::AbsolutePathBuf>>| {
            paths.into_iter().flatten().map(|path| path.to_path_buf()).collect()
        };
        Self {
            read: paths(file_system.and_then(|files| files.read.as_ref())),
            write: paths(file_system.and_then(|files| files.write.as_ref())),
            network: network.and_then(|network| network.enabled) == Some(true),
        }
    }

    pub fn extend(&mut self, more: &Self) {
        self.read.extend(more.read.iter().cloned());
        self.write.extend(more.write.iter().cloned());
        self.network |= more.network;
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn apply(&self, sandbox: &mut Sandbox) {
        for path in &self.read {
            sandbox.grant_read(path);
        }
        for path in &self.write {
            sandbox.grant_write(path);
        }
        if self.network {
            sandbox.grant_network();
        }
    }
}
