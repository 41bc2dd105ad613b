//! The working directory of the process: relative paths of requests start there.

use loomd_protocol::AbsolutePathBuf;

use crate::refusal::Refusal;

/// Returns the working directory; refused when it was removed or cannot be read.
pub fn working_directory() -> Result<AbsolutePathBuf, Refusal> {
    let here = std::env::current_dir();
    let here = here.map_err(|error| Refusal::failed(format!("the server has no working directory: {error}")))?;
    AbsolutePathBuf::new(here).ok_or_else(|| Refusal::failed("the server has no working directory"))
}

/// Returns an absolute path as it is and a relative one from the working directory.
pub fn absolute(path: &str) -> Result<AbsolutePathBuf, Refusal> {
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
