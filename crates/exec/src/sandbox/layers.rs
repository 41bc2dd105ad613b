//! What a sandbox lays over the files, in the order in which it is laid: outer things first, so that what is inside
//! them has the last word.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Sandbox, WritableRoot};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer<'a> {
    Writable(&'a WritableRoot),
    /// May be read only.
    ReadOnly(&'a Path),
    /// May not even be read.
    Closed(&'a Path),
    /// Stays where it is, whatever may be done in it: something is laid over what is inside, and moving this would
    /// carry that to where the next command knows nothing of it.
    Pinned(&'a Path),
}

impl<'a> Layer<'a> {
    pub fn path(self) -> &'a Path {
        match self {
            Self::Writable(root) => &root.path,
            Self::ReadOnly(path) | Self::Closed(path) | Self::Pinned(path) => path,
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

    /// The same, with what must be pinned for it.
    pub(super) fn overlay(&self) -> Vec<Layer<'_>> {
        let mut layers = self.layers();
        let mut pinned = BTreeSet::new();
        let at = |path: &Path| layers.iter().find(|layer| layer.path() == path);
        for exception in &self.exceptions {
            let above = || exception.path.ancestors().skip(1);
            // Only what lies in a writable folder could be moved.
            if matches!(above().find_map(at), Some(Layer::Writable(_))) {
                pinned.extend(above().take_while(|folder| at(folder).is_none()));
            }
        }
        layers.extend(pinned.into_iter().map(Layer::Pinned));
        layers.sort_by_key(|layer| layer.path().components().count());
        layers
    }

    /// The layer that decides about a path, which has no links in it.
    pub(super) fn innermost(&self, path: &Path) -> Option<Layer<'_>> {
        self.layers().into_iter().rev().find(|layer| path.starts_with(layer.path()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Exception;
    use super::*;

    #[test]
    fn what_holds_something_special_stays_where_it_is() {
        let exception = |path: &str, readable| Exception { path: path.into(), readable };
        let root = |path: &str| WritableRoot { path: path.into(), protected: vec![], absent: vec![] };
        let sandbox = Sandbox {
            writable: vec![root("/w"), root("/w/a/in/x")],
            exceptions: vec![
                exception("/w/a/b/c/no", false),
                exception("/w/ro", true),
                exception("/w/ro/d/no", false),
                exception("/else/where", false),
                exception("/w/a/in/x/y/no", false),
            ],
            ..Sandbox::with_readable(None, false)
        };
        let pinned = sandbox.overlay().into_iter().filter_map(|layer| match layer {
            Layer::Pinned(path) => path.to_str(),
            _ => None,
        });
        assert_eq!(pinned.collect::<Vec<_>>(), ["/w/a", "/w/a/b", "/w/a/b/c", "/w/a/in/x/y"]);
    }
}
