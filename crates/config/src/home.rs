//! The locations of configuration: the home directory, and the system's file. Reads nothing in the home.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use loomd_protocol::AbsolutePathBuf;
use thiserror::Error;

/// Returns `LOOMD_HOME`, or else `CODEX_HOME`, or else `$HOME/.codex`, which is created if it is missing. Resolves
/// symlinks. An empty variable counts as unset.
pub fn find_home(env: impl Fn(&str) -> Option<OsString>) -> Result<AbsolutePathBuf, HomeError> {
    let set = |name| env(name).filter(|value| !value.is_empty());
    for variable in ["LOOMD_HOME", "CODEX_HOME"] {
        if let Some(value) = set(variable) {
            return chosen_home(variable, PathBuf::from(value));
        }
    }
    let home = PathBuf::from(set("HOME").ok_or(HomeError::Unknown)?).join(".codex");
    loomd_private::create_dir_all(&home)
        .and_then(|()| canonical(&home))
        .map_err(|error| HomeError::Unusable { path: home, error })
}

/// The configuration file of the machine, which need not exist.
pub fn system_file(env: impl Fn(&str) -> Option<OsString>) -> Option<AbsolutePathBuf> {
    if cfg!(windows) {
        AbsolutePathBuf::new(Path::new(&env("ProgramData")?).join("OpenAI\\Codex\\config.toml"))
    } else {
        AbsolutePathBuf::new("/etc/codex/config.toml")
    }
}

/// Why there is no home directory.
#[derive(Debug, Error)]
pub enum HomeError {
    #[error("{variable} points to {path:?}, but that path does not exist")]
    Missing { variable: &'static str, path: PathBuf },
    #[error("{variable} points to {path:?}, but that path is not a directory")]
    NotADirectory { variable: &'static str, path: PathBuf },
    #[error("failed to open the home directory {path:?}: {error}")]
    Unusable { path: PathBuf, error: io::Error },
    #[error("no home directory: set LOOMD_HOME, CODEX_HOME or HOME")]
    Unknown,
}

fn chosen_home(variable: &'static str, path: PathBuf) -> Result<AbsolutePathBuf, HomeError> {
    match canonical(&path) {
        Ok(home) if home.is_dir() => Ok(home),
        Ok(_) => Err(HomeError::NotADirectory { variable, path }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(HomeError::Missing { variable, path }),
        Err(error) => Err(HomeError::Unusable { path, error }),
    }
}

fn canonical(path: &Path) -> io::Result<AbsolutePathBuf> {
    AbsolutePathBuf::new(path.canonicalize()?).ok_or_else(|| io::ErrorKind::InvalidFilename.into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// `<dir>` stands for a new folder with the folders `a` and `b`, the file `f` and the symlink `l` to `a`.
    fn check(env: &[(&str, &str)], expected: Result<&str, &str>) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("a")).unwrap();
        fs::create_dir(root.join("b")).unwrap();
        fs::write(root.join("f"), "").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.join("a"), root.join("l")).unwrap();
        let real = |text: &str| text.replace("<dir>", root.to_str().unwrap());

        let found =
            find_home(|name| env.iter().find(|(variable, _)| *variable == name).map(|(_, value)| real(value).into()));

        match expected {
            Ok(path) => {
                let home = found.unwrap();
                assert_eq!(*home, *Path::new(&real(path)));
                assert!(home.is_dir());
            }
            Err(message) => assert_eq!(found.unwrap_err().to_string(), real(message)),
        }
    }

    #[test]
    fn the_first_set_variable_names_the_home() {
        check(&[("LOOMD_HOME", "<dir>/a"), ("CODEX_HOME", "<dir>/b")], Ok("<dir>/a"));
        check(&[("LOOMD_HOME", ""), ("CODEX_HOME", "<dir>/b")], Ok("<dir>/b"));
    }

    #[test]
    fn the_default_home_is_created() {
        check(&[("CODEX_HOME", ""), ("HOME", "<dir>/new")], Ok("<dir>/new/.codex"));
    }

    #[test]
    #[cfg(unix)]
    fn symlinks_are_resolved() {
        check(&[("CODEX_HOME", "<dir>/l/../a/.")], Ok("<dir>/a"));
        check(&[("CODEX_HOME", "<dir>/l")], Ok("<dir>/a"));
    }

    #[test]
    fn an_unusable_home_is_reported_with_its_variable() {
        let missing = "points to \"<dir>/no\", but that path does not exist";
        check(&[("CODEX_HOME", "<dir>/no")], Err(&format!("CODEX_HOME {missing}")));
        check(&[("LOOMD_HOME", "<dir>/no")], Err(&format!("LOOMD_HOME {missing}")));
        let file = "CODEX_HOME points to \"<dir>/f\", but that path is not a directory";
        check(&[("CODEX_HOME", "<dir>/f")], Err(file));
        check(&[], Err("no home directory: set LOOMD_HOME, CODEX_HOME or HOME"));
    }
}
