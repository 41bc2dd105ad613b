//! Fuzzy file search: finds files by a few letters of their paths.
//!
//! A [`Tree`](tree) holds the files below one folder and detects changes, so that only the first search walks the
//! disk. [`Trees`] caches trees, [`search`](Trees::search) runs a single query, and [`Sessions`] answer keystroke
//! after keystroke.

mod index;
mod query;
mod roots;
mod rules;
mod scorer;
mod sessions;
mod stamp;
mod tree;
mod trees;
mod walk;
mod watch;

pub use index::Index;
pub use query::Query;
pub use sessions::{Deliver, SearchSubscriber, SessionError, SessionEvent, Sessions};
pub use trees::Trees;

/// The most files in one result.
pub const MAX_RESULTS: usize = 50;

/// Threads for walking and matching; more do not help.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(12))
}

/// For the benchmark, which needs an index without a disk.
#[doc(hidden)]
pub mod bench {
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use crate::index::{FoundPath, Index};
    use crate::roots::{Root, search};

    pub struct Keystrokes(Vec<(Root, Arc<Index>)>);

    impl Keystrokes {
        pub fn new(paths: impl Iterator<Item = String>) -> Self {
            let index = Index::new(paths.map(|path| FoundPath { path, is_dir: false }).collect());
            Self(vec![(Root { given: "/".into(), path: PathBuf::from("/") }, Arc::new(index))])
        }

        /// Returns the number of files found.
        pub fn search(&self, query: &str) -> usize {
            search(query, &self.0, &AtomicBool::new(false)).len()
        }
    }
}
