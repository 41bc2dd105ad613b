//! The folder in which the server was started: relative paths of requests start there.

use loomd_agent::Refusal;
use loomd_protocol::{AbsolutePathBuf, RpcError};

/// The working directory was removed, or cannot be looked at.
#[derive(Debug)]
pub(crate) struct NoWorkingDirectory(String);

impl From<NoWorkingDirectory> for Refusal {
    fn from(error: NoWorkingDirectory) -> Self {
        Self::failed(error.0)
    }
}

impl From<NoWorkingDirectory> for RpcError {
    fn from(error: NoWorkingDirectory) -> Self {
        Self::internal(error.0)
    }
}

pub(crate) fn working_directory() -> Result<AbsolutePathBuf, NoWorkingDirectory> {
    let here = std::env::current_dir();
    let here = here.map_err(|error| NoWorkingDirectory(format!("the server has no working directory: {error}")))?;
    AbsolutePathBuf::new(here).ok_or_else(|| NoWorkingDirectory("the server has no working directory".into()))
}

/// An absolute path as it is, a relative one from the working directory.
pub(crate) fn absolute(path: &str) -> Result<AbsolutePathBuf, NoWorkingDirectory> {
    match AbsolutePathBuf::new(path) {
        Some(path) => Ok(path),
        None => Ok(AbsolutePathBuf::resolve(&working_directory()?, path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_start_in_the_working_directory() {
        let here = std::env::current_dir().unwrap();
        for (given, expected) in [("/a/../b", "/b".into()), ("", here.clone()), ("x/./y", here.join("x/y"))] {
            assert_eq!(absolute(given).unwrap().into_path_buf(), expected, "{given}");
        }
    }
}
