//! The mounts of a sandbox in the order in which they are made: outer paths first, so that a mount inside another
//! takes precedence.

use std::collections::BTreeSet;
use std::path::Path;

use super::conceal::ConcealedFolder;
use super::{Sandbox, WritableRoot};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer<'a> {
    /// A folder that cannot be moved, whatever may be done in it: another layer lies inside, and would move with it to
    /// a path that the next command's sandbox does not cover.
    Pinned(&'a Path),
    /// A part of a writable root that must not be changed: of a link, the link itself and not its target.
    Protected(&'a Path),
    Writable(&'a WritableRoot),
    /// Can be read and not written.
    ReadOnly(&'a Path),
    /// Can be neither read nor written.
    Closed(&'a Path),
    /// Can be read, except for some entries, and not written.
    Concealed(&'a ConcealedFolder),
}

impl<'a> Layer<'a> {
    pub fn path(self) -> &'a Path {
        match self {
            Self::Writable(root) => &root.path,
            Self::Concealed(concealed) => &concealed.folder,
            Self::Pinned(path) | Self::Protected(path) | Self::ReadOnly(path) | Self::Closed(path) => path,
        }
    }

    /// Outer layers first; of several at one path the later variant takes precedence.
    fn order(self) -> (usize, u8) {
        let kind = match self {
            Self::Pinned(_) => 0,
            Self::Protected(_) => 1,
            Self::Writable(_) => 2,
            Self::ReadOnly(_) => 3,
            Self::Closed(_) => 4,
            Self::Concealed(_) => 5,
        };
        (self.path().components().count(), kind)
    }
}

impl Sandbox {
    pub(super) fn layers(&self) -> Vec<Layer<'_>> {
        let exceptions = self.exceptions.iter().map(|exception| match exception.readable {
            true => Layer::ReadOnly(&exception.path),
            false => Layer::Closed(&exception.path),
        });
        let concealed = self.concealed.iter().map(Layer::Concealed);
        let mut layers: Vec<_> = self.writable.iter().map(Layer::Writable).chain(exceptions).chain(concealed).collect();
        layers.sort_by_key(|layer| layer.order());
        layers
    }

    /// All layers with the protected paths of writable roots, and the folders that have to be pinned for them.
    pub(super) fn overlay(&self) -> Vec<Layer<'_>> {
        let mut layers = self.layers();
        let protected = self.writable.iter().flat_map(|root| root.protected.iter().chain(&root.absent));
        layers.extend(protected.map(|path| Layer::Protected(path)));
        let mut pinned = BTreeSet::new();
        let at = |path: &Path| layers.iter().find(|layer| layer.path() == path);
        for layer in &layers {
            let above = || layer.path().ancestors().skip(1);
            // Only entries of a writable folder could be moved.
            if matches!(above().find_map(at), Some(Layer::Writable(_))) {
                pinned.extend(above().take_while(|folder| at(folder).is_none()));
            }
        }
        layers.extend(pinned.into_iter().map(Layer::Pinned));
        layers.sort_by_key(|layer| layer.order());
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
    fn folders_above_a_nested_layer_are_pinned() {
        let exception = |path: &str, readable| Exception { path: path.into(), identity: None, readable };
        let root = |path: &str, protected: &[&str]| WritableRoot {
            path: path.into(),
            identity: None,
            protected: protected.iter().map(Into::into).collect(),
            absent: vec![],
        };
        let sandbox = Sandbox {
            writable: vec![root("/w", &["/w/.git", "/w/far/away/repo"]), root("/w/a/in/x", &[])],
            exceptions: vec![
                exception("/w/a/b/c/no", false),
                exception("/w/ro", true),
                exception("/w/ro/d/no", false),
                exception("/else/where", false),
                exception("/w/a/in/x/y/no", false),
            ],
            concealed: vec![ConcealedFolder { folder: "/w/our/home".into(), names: vec![] }],
            ..Sandbox::new_read_only(false)
        };
        let pinned = sandbox.overlay().into_iter().filter_map(|layer| match layer {
            Layer::Pinned(path) => path.to_str(),
            _ => None,
        });
        assert_eq!(
            pinned.collect::<Vec<_>>(),
            ["/w/a", "/w/far", "/w/our", "/w/a/b", "/w/a/in", "/w/far/away", "/w/a/b/c", "/w/a/in/x/y"]
        );
    }
}
