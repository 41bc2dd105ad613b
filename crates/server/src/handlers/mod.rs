//! What each method does, one file per family. A handler checks its params, asks whoever owns the state,
//! and maps the error.

pub(crate) mod config;
pub(crate) mod fs;
pub(crate) mod mock;
pub(crate) mod search;
pub(crate) mod summary;
pub(crate) mod thread;
