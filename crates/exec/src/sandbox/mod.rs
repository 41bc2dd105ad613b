//! How a command is confined: which files it may read and write, and whether it may reach the network. The
//! command is started through this program itself under another name, which sets up the confinement and
//! becomes the command; so whoever owns `main` must call [`run_if_helper`](crate::run_if_helper) first.
//!
//! Three ways are tried in turn: namespaces of our own, bubblewrap (which some systems allow where they
//! refuse us), and Landlock alone, which cannot protect folders inside a writable one and so is no way for
//! sandboxes that ask for that. Behind the first two Landlock stands as a second wall where the kernel has it.
//! [`Report`] says what a system has. Where nothing will do, the command does not run.

mod bubblewrap;
mod conceal;
mod denial;
mod devices;
mod doors;
mod helper;
mod landlock;
mod layers;
mod limits;
mod mounts;
mod namespaces;
mod permissions;
mod placeholder;
mod plan;
mod report;
mod roots;
#[cfg(any(test, target_os = "macos"))]
mod seatbelt;
mod seccomp;
mod sys;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use conceal::Concealed;
pub use denial::looks_denied;
pub use doors::Doors;
pub(crate) use helper::{INSIDE, help};
pub use limits::ResourceLimits;
pub use plan::{Surroundings, network_disabled};
pub use report::Report;
use roots::Identity;
pub use roots::{Grant, Roots};

use crate::helper::{SANDBOX, THIS_PROGRAM, is_ready};
use crate::{Command, Error, Result};

/// What a command may touch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// `None`: everything.
    readable: Option<Vec<ReadableRoot>>,
    writable: Vec<WritableRoot>,
    /// What differs from what is around it.
    exceptions: Vec<Exception>,
    /// Folders that are shown without some of their entries.
    concealed: Vec<Concealed>,
    network: bool,
    /// Whether a command with network may connect to unix sockets.
    unix_sockets: bool,
    /// Ports that somebody outside answers, on a loopback of the command's own.
    doors: Vec<u16>,
    limits: ResourceLimits,
    means: Means,
    /// Whether Landlock stands behind the mounts where the kernel has it.
    landlock: bool,
}

/// How a command is confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Means {
    /// By the strongest means that this system has.
    #[default]
    Best,
    Bubblewrap,
    Landlock,
}

/// A folder, or file, that may be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ReadableRoot {
    /// The path that it was granted by; it may be a link.
    name: PathBuf,
    path: PathBuf,
    identity: Option<Identity>,
}

/// A folder, or file, that may be written to, except for some things in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct WritableRoot {
    path: PathBuf,
    identity: Option<Identity>,
    /// What exists in it and must stay as it is.
    protected: Vec<PathBuf>,
    /// What does not exist and must not come to be.
    absent: Vec<PathBuf>,
}

/// A folder or file that may be read only, or not even that, though more may be done around it; or that may be
/// read though it lies in one that may not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Exception {
    path: PathBuf,
    identity: Option<Identity>,
    readable: bool,
}

impl Sandbox {
    /// The command that runs `command` in this sandbox.
    #[cfg(target_os = "macos")]
    pub fn wrap(&self, command: &Command, _: Option<&Path>) -> Result<Command> {
        let mut argv = seatbelt::words(self).ok_or(Error::SandboxPath)?;
        argv.extend(command.argv.iter().cloned());
        Ok(Command { argv, arg0: None, ..command.clone() })
    }

    /// The command that runs `command` in this sandbox. `helper` is a program whose `main` calls
    /// [`run_if_helper`](crate::run_if_helper); without one it is this program.
    #[cfg(not(target_os = "macos"))]
    pub fn wrap(&self, command: &Command, helper: Option<&Path>) -> Result<Command> {
        if helper.is_none() && !is_ready() {
            return Err(Error::NoHelper);
        }
        let plan = serde_json::to_string(self).map_err(|_| Error::SandboxPath)?;
        let helper = helper.unwrap_or(Path::new(THIS_PROGRAM)).to_str().ok_or(Error::SandboxPath)?;
        let mut argv = vec![helper.to_owned(), plan];
        argv.extend(command.argv.iter().cloned());
        Ok(Command { argv, arg0: Some(SANDBOX.into()), ..command.clone() })
    }

    /// The command that runs `command` in this sandbox with nothing of the network but these TCP ports of its own
    /// loopback, and the other side of those ports.
    pub fn wrap_with_doors(&self, command: &Command, helper: Option<&Path>, ports: &[u16]) -> Result<(Command, Doors)> {
        let sandbox = Self { network: false, doors: ports.to_vec(), ..self.clone() };
        let (doors, channel) = Doors::new(ports.len())?;
        Ok((Command { channel: Some(channel), ..sandbox.wrap(command, helper)? }, doors))
    }

    /// Asks for the older way, without namespaces.
    pub fn with_landlock_only(mut self) -> Self {
        self.means = Means::Landlock;
        self
    }

    /// Does without Landlock behind the mounts, as a kernel that has none.
    pub fn without_landlock(mut self) -> Self {
        self.landlock = false;
        self
    }

    /// Asks for bubblewrap even where we could do without.
    pub fn with_bubblewrap_only(mut self) -> Self {
        self.means = Means::Bubblewrap;
        self
    }

    /// Fails when something that access was granted to is not what it was then. Inside the sandbox this is about what is
    /// mounted, and nothing can change it any more.
    fn check_granted(&self) -> io::Result<()> {
        let readable = self.readable.iter().flatten().map(|root| (&root.path, root.identity));
        let writable = self.writable.iter().map(|root| (&root.path, root.identity));
        // What is concealed is covered by then, and neither granted nor to be told from what it was.
        let covered = |path: &PathBuf| self.concealed.iter().any(|concealed| concealed.folder == *path);
        let mut granted = readable.chain(writable).filter(|(path, _)| !covered(path));
        granted.try_for_each(|(path, identity)| roots::check(path, identity))
    }

    /// The same for what is narrowed; to be called before it is covered.
    fn check_exceptions(&self) -> io::Result<()> {
        self.exceptions.iter().try_for_each(|exception| roots::check(&exception.path, exception.identity))
    }

    /// Whether nothing inside a writable folder is to be kept from the command.
    fn has_only_whole_folders(&self) -> bool {
        let whole = |root: &WritableRoot| root.protected.is_empty() && root.absent.is_empty();
        self.exceptions.is_empty() && self.writable.iter().all(whole)
    }
}
