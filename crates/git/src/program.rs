//! Asking the git program about a repository that nobody vouches for.
//!
//! A repository's configuration names programs: filters, monitors, hooks, helpers. Whoever wrote it must not run
//! them through us, so the program is only ever started by a [`Launcher`], which confines it, and everything in the
//! configuration that starts programs or reaches the network is switched off besides.

use std::path::{Path, PathBuf};

use crate::Repository;

/// Starts the git program where it can change nothing and reach nobody.
pub trait Launcher: Sync {
    /// `None` when the program cannot be run or cannot be confined, takes too long or says too much.
    fn launch(&self, invocation: Invocation) -> impl Future<Output = Option<GitOutput>> + Send;
}

/// One run of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// Without the program's own name.
    pub arguments: Vec<String>,
    /// What its environment must hold; of the server's own variables none that begins with `GIT_` may be there.
    pub variables: Vec<(String, String)>,
    /// Where it runs.
    pub folder: PathBuf,
    /// A program in here is not git.
    pub work_tree: PathBuf,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitOutput {
    pub code: i32,
    pub stdout: Vec<u8>,
}

/// Configuration that starts programs, or leads elsewhere.
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
    // Looking must not get in the way of the user's own git.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // Objects that a partial clone lacks are not fetched; older versions only know that no protocol is allowed.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
];

/// More filters than this are no configuration that somebody wrote.
const MAX_FILTERS: usize = 64;

/// The program, asked about one repository.
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

    /// The same, with every filter switched off that the configuration defines. Needed for whatever looks at files
    /// of the work tree. There is no switch for all filters, so each is overridden by its name.
    pub async fn without_filters(mut self) -> Option<Self> {
        let answer = self.run(&["config", "-z", "--name-only", "--get-regexp", r"^filter\."]).await?;
        // 1 says that there are none.
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

    /// Its standard output when it succeeds.
    pub async fn output(&self, arguments: &[&str]) -> Option<String> {
        let answer = self.run(arguments).await?;
        (answer.code == 0).then(|| String::from_utf8_lossy(&answer.stdout).into_owned())
    }

    /// The first line of its answer, if there is something on it.
    pub async fn first_line(&self, arguments: &[&str]) -> Option<String> {
        let answer = self.output(arguments).await?;
        let line = answer.lines().next()?.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    pub async fn run(&self, arguments: &[&str]) -> Option<GitOutput> {
        self.launcher.launch(self.invocation(arguments)?).await
    }

    /// The repository is named, so that its own `core.worktree` does not count and none is looked for.
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
