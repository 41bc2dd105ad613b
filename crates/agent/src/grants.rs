//! Permissions beyond the policy that the user has granted.

use loomd_exec::sandbox::{Grant, Sandbox};
use loomd_protocol::{AbsolutePathBuf, AdditionalFileSystemPermissions, AdditionalNetworkPermissions};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grants {
    pub read: Vec<Grant>,
    pub write: Vec<Grant>,
    pub network: bool,
}

impl Grants {
    pub fn of(
        file_system: Option<&AdditionalFileSystemPermissions>,
        network: Option<&AdditionalNetworkPermissions>,
    ) -> Self {
        let paths = |paths: Option<&Vec<AbsolutePathBuf>>| {
            paths.into_iter().flatten().map(|path| Grant::new(path.to_path_buf())).collect()
        };
        Self {
            read: paths(file_system.and_then(|files| files.read.as_ref())),
            write: paths(file_system.and_then(|files| files.write.as_ref())),
            network: network.and_then(|network| network.enabled) == Some(true),
        }
    }

    /// The intersection with the permissions that the user granted.
    pub fn among(
        mut self,
        file_system: Option<&AdditionalFileSystemPermissions>,
        network: Option<&AdditionalNetworkPermissions>,
    ) -> Self {
        let given = |list: Option<&Vec<AbsolutePathBuf>>, grant: &Grant| {
            list.is_some_and(|list| list.iter().any(|path| **path == *grant.path()))
        };
        self.read.retain(|grant| given(file_system.and_then(|files| files.read.as_ref()), grant));
        self.write.retain(|grant| given(file_system.and_then(|files| files.write.as_ref()), grant));
        self.network &= network.and_then(|network| network.enabled) == Some(true);
        self
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
        for grant in &self.read {
            sandbox.grant_read(grant);
        }
        for grant in &self.write {
            sandbox.grant_write(grant);
        }
        if self.network {
            sandbox.grant_network();
        }
    }
}
