//! Sandboxes: which files a command may read and write, and whether it may reach the network. A command whose sandbox
//! cannot be enforced does not run. Each platform enforces a [`Sandbox`] in its own way (`linux/`, `macos/`); what it
//! grants is decided here.

mod conceal;
mod denial;
mod layers;
mod limits;
mod permissions;
mod plan;
mod roots;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as platform;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
use macos as platform;
// The profile is text, so its tests run everywhere.
#[cfg(all(test, not(target_os = "macos")))]
#[path = "macos/seatbelt.rs"]
mod seatbelt;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use conceal::ConcealedFolder;
pub use denial::looks_denied;
pub use limits::ResourceLimits;
pub use plan::{Surroundings, network_disabled};
pub(crate) use platform::is_wrapped;
#[cfg(target_os = "linux")]
pub(crate) use platform::{INSIDE, help};
pub use platform::{LoopbackPorts, Report};
use roots::Identity;
pub use roots::{Grant, Roots};

use crate::{Command, Result};

/// What a command may access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// `None`: everything.
    readable: Option<Vec<ReadableRoot>>,
    writable: Vec<WritableRoot>,
    /// Paths with other access than the folders around them.
    exceptions: Vec<Exception>,
    /// Folders that are shown without some of their entries.
    concealed: Vec<ConcealedFolder>,
    network: bool,
    /// Whether a command with network may connect to unix sockets.
    unix_sockets: bool,
    /// Ports of the command's own loopback that are served outside of the sandbox.
    loopback_ports: Vec<u16>,
    limits: ResourceLimits,
    mechanism: Mechanism,
    /// Whether Landlock is applied in addition to mounts where the kernel has it.
    landlock: bool,
}

/// How a command is confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Mechanism {
    /// By the strongest mechanism that this system has.
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
    /// Existing paths in it that must not be changed.
    protected: Vec<PathBuf>,
    /// Paths in it that do not exist and must not be created.
    absent: Vec<PathBuf>,
}

/// A folder or file with less access than the folder around it, or a readable one in a folder that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Exception {
    path: PathBuf,
    identity: Option<Identity>,
    readable: bool,
}

impl Sandbox {
    /// The command that runs `command` in this sandbox. `helper` is a program whose `main` calls
    /// [`run_if_helper`](crate::run_if_helper); without one it is this program.
    pub fn wrap(&self, command: &Command, helper: Option<&Path>) -> Result<Command> {
        platform::wrap(self, command, helper)
    }

    /// The command that runs `command` in this sandbox with no network except these TCP ports of its own loopback, and
    /// the outer side of those ports.
    pub fn wrap_with_ports(
        &self,
        command: &Command,
        helper: Option<&Path>,
        ports: &[u16],
    ) -> Result<(Command, LoopbackPorts)> {
        let sandbox = Self { network: false, loopback_ports: ports.to_vec(), ..self.clone() };
        platform::wrap_with_ports(&sandbox, command, helper)
    }

    /// Confines by Landlock alone, without namespaces.
    pub fn with_landlock_only(mut self) -> Self {
        self.mechanism = Mechanism::Landlock;
        self
    }

    /// Does not apply Landlock behind the mounts, as on a kernel without it.
    pub fn without_landlock(mut self) -> Self {
        self.landlock = false;
        self
    }

    /// Confines by bubblewrap even where namespaces of our own work.
    pub fn with_bubblewrap_only(mut self) -> Self {
        self.mechanism = Mechanism::Bubblewrap;
        self
    }

    /// Fails when a granted path no longer names the folder that it named when it was granted. Inside the sandbox this
    /// checks the mounts, which nothing can change any more.
    fn check_granted(&self) -> io::Result<()> {
        let readable = self.readable.iter().flatten().map(|root| (&root.path, root.identity));
        let writable = self.writable.iter().map(|root| (&root.path, root.identity));
        // A concealed folder is covered by then, so its identity has changed.
        let covered = |path: &PathBuf| self.concealed.iter().any(|concealed| concealed.folder == *path);
        let mut granted = readable.chain(writable).filter(|(path, _)| !covered(path));
        granted.try_for_each(|(path, identity)| roots::check(path, identity))
    }

    /// Like [`Self::check_granted`], for exceptions. To be called before they are covered.
    fn check_exceptions(&self) -> io::Result<()> {
        self.exceptions.iter().try_for_each(|exception| roots::check(&exception.path, exception.identity))
    }
}
