//! Runs the git program on an untrusted repository.
//!
//! A repository's configuration names programs: filters, monitors, hooks, helpers. Its author must not be able to run
//! them, so the program is only started by a [`Launcher`], which confines it, and all configuration that starts
//! programs or reaches the network is overridden as well.

use std::path::{Path, PathBuf};

use crate::Repository;

/// Starts the git program without write access and network.
pub trait Launcher: Sync {
    /// `None` if the program cannot be run or confined, times out, or prints too much.
    fn launch(&self, invocation: Invocation) -> impl Future<Output = Option<GitOutput>> + Send;
}

/// One run of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// Without the program's own name.
    pub arguments: Vec<String>,
    /// Variables to set; of the server's own variables none that starts with `GIT_` may be inherited.
    pub variables: Vec<(String, String)>,
    /// The working directory.
    pub folder: PathBuf,
    /// The launcher must not use a git program inside of this folder.
    pub work_tree: PathBuf,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitOutput {
    pub code: i32,
    pub stdout: Vec<u8>,
}

/// Configuration that starts programs or reaches other places.
const SETTINGS: &[&str] = &[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.askPass=false",
    "credential.helper=",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
];

const VARIABLES: &[(&str, &str)] = &[
    // No locks, which could fail the user's own git commands.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // Objects that a partial clone lacks are not fetched; older versions only support allowing no protocol.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
];

/// Largest number of filters in a configuration.
const MAX_FILTERS: usize = 64;

/// The program, bound to one repository.
pub(crate) struct Program<'a, L> {
    launcher: &'a L,
    repository: &'a Repository,
    folder: &'a Path,
    /// Configuration beyond [`SETTINGS`].
    overrides: Vec<(String, String)>,
}

impl<'a, L: Launcher> Program<'a, L> {
    pub fn new(launcher: &'a L, repository: &'a Repository, folder: &'a Path) -> Self {
        Self { launcher, repository, folder, overrides: Vec::new() }
    }

    /// Switches off every filter that the configuration defines. Needed for every command that reads files of the
    /// work tree. There is no switch for all filters, so each is overridden by its name.
    pub async fn without_filters(mut self) -> Option<Self> {
        let answer = self.run(&["config", "-z", "--name-only", "--get-regexp", r"^filter\."]).await?;
        // 1 means that there are none.
        if !matches!(answer.code, 0 | 1) {
            return None;
        }
        let names = String::from_utf8(answer.stdout).ok()?;
        let drivers = names.split('\0').filter_map(|name| Some(name.strip_prefix("filter.")?.rsplit_once('.')?.0));
        let drivers: std::collections::BTreeSet<&str> = drivers.collect();
        if drivers.len() > MAX_FILTERS {
            return None;
        }
        for driver in drivers {
            for (key, value) in [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")] {
                self.overrides.push((format!("filter.{driver}.{key}"), value.to_owned()));
            }
        }
        Some(self)
    }

    /// The standard output, if the program succeeds.
    pub async fn output(&self, arguments: &[&str]) -> Option<String> {
        let answer = self.run(arguments).await?;
        (answer.code == 0).then(|| String::from_utf8_lossy(&answer.stdout).into_owned())
    }

    /// The first line of the output, unless it is empty.
    pub async fn first_line(&self, arguments: &[&str]) -> Option<String> {
        let answer = self.output(arguments).await?;
        let line = answer.lines().next()?.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    pub async fn run(&self, arguments: &[&str]) -> Option<GitOutput> {
        self.launcher.launch(self.invocation(arguments)?).await
    }

    /// Passes the repository explicitly, so that its `core.worktree` does not apply and none is searched.
    fn invocation(&self, arguments: &[&str]) -> Option<Invocation> {
        let work_tree = absolute(&self.repository.work_tree)?;
        let git_dir = absolute(&self.repository.git_dir)?;
        let mut words = vec!["--no-pager".to_owned(), "--no-optional-locks".to_owned()];
        words.extend([format!("--git-dir={}", git_dir.to_str()?), format!("--work-tree={}", work_tree.to_str()?)]);
        words.extend(SETTINGS.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]));
        words.extend(arguments.iter().map(|&argument| argument.to_owned()));
        let mut variables: Vec<_> =
            VARIABLES.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        variables.push(("GIT_CONFIG_COUNT".to_owned(), self.overrides.len().to_string()));
        for (index, (key, value)) in self.overrides.iter().enumerate() {
            variables.push((format!("GIT_CONFIG_KEY_{index}"), key.clone()));
            variables.push((format!("GIT_CONFIG_VALUE_{index}"), value.clone()));
        }
        Some(Invocation { arguments: words, variables, folder: absolute(self.folder)?, work_tree })
    }
}

fn absolute(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}
