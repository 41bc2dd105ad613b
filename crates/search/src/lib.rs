//! Finding files by a few letters of their paths.
//!
//! A [`Tree`](tree) knows the files below one folder and learns what changed since it was last asked, so
//! that only the first question has to walk the disk. [`Trees`] keeps the ones in use, [`search`](Trees::search)
//! answers one question, and [`Sessions`] answer keystroke after keystroke.

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
pub use sessions::{Deliver, SessionEvent, SessionError, Sessions, SearchSubscriber};
pub use trees::Trees;

/// The most files in one answer.
pub const MAX_RESULTS: usize = 50;

/// Threads for walking and matching. More only get in each other's way.
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

        /// How many files were found.
        pub fn search(&self, query: &str) -> usize {
            search(query, &self.0, &AtomicBool::new(false)).len()
        }
    }
}
