//! A program to run, with its arguments, folder and environment.

use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// A program to run: its arguments, working directory and environment. Nothing else is inherited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments. A program without a slash is looked up in the `PATH` of `env`.
    pub argv: Vec<String>,
    /// The program's `argv[0]`, where it differs from the file that is executed.
    pub arg0: Option<String>,
    pub cwd: PathBuf,
    pub env: Environment,
    /// The socket that the program inherits as descriptor 3.
    pub(crate) channel: Option<Channel>,
}

/// One end of a socket pair to a program.
#[derive(Clone, Debug)]
pub(crate) struct Channel(pub Arc<OwnedFd>);

impl PartialEq for Channel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Channel {}

impl Command {
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>, cwd: impl Into<PathBuf>, env: Environment) -> Self {
        Self { argv: argv.into_iter().map(Into::into).collect(), arg0: None, cwd: cwd.into(), env, channel: None }
    }
}

/// Variables by name. Values may be secrets, so only names are ever printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(pub BTreeMap<String, String>);

impl Environment {
    /// The variables of this process. Those that are not text are left out.
    pub fn of_this_process() -> Self {
        Self(std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Environment {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(pairs: T) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}
