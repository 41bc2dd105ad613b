//! What a sandbox lays over the files, in the order in which it is laid: outer things first, so that what is inside
//! them has the last word.

use std::path::Path;

use super::{Sandbox, WritableRoot};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer<'a> {
    Writable(&'a WritableRoot),
    /// May be read only.
    ReadOnly(&'a Path),
    /// May not even be read.
    Closed(&'a Path),
}

impl<'a> Layer<'a> {
    pub fn path(self) -> &'a Path {
        match self {
            Self::Writable(root) => &root.path,
            Self::ReadOnly(path) | Self::Closed(path) => path,
        }
    }
}

impl Sandbox {
    pub(super) fn layers(&self) -> Vec<Layer<'_>> {
        let exceptions = self.exceptions.iter().map(|exception| match exception.readable {
            true => Layer::ReadOnly(&exception.path),
            false => Layer::Closed(&exception.path),
        });
        let mut layers: Vec<_> = self.writable.iter().map(Layer::Writable).chain(exceptions).collect();
        layers.sort_by_key(|layer| layer.path().components().count());
        layers
    }

    /// The layer that decides about a path, which has no links in it.
    pub(super) fn innermost(&self, path: &Path) -> Option<Layer<'_>> {
        self.layers().into_iter().rev().find(|layer| path.starts_with(layer.path()))
    }
}
