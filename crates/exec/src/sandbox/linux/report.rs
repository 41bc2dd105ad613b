//! Which mechanisms of confinement work on this system. The helper tries each, because nothing else shows it.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{bubblewrap, landlock, namespaces, seccomp};
use crate::helper::{SANDBOX, THIS_PROGRAM, is_ready};
use crate::sandbox::{Mechanism, Sandbox};
use crate::{Command, Environment, Error, Limits, Result, run};

/// The helper's argument when it is to report instead of confining a command.
pub(super) const REPORT: &str = "--report";

/// The mechanisms that work on this system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// User, mount, process and network namespaces of our own.
    pub namespaces: bool,
    /// Only tried where namespaces do not work, because only then it matters.
    pub bubblewrap: bool,
    /// Landlock, which is used in addition to the others, and alone where neither works.
    pub landlock: bool,
    /// Filters of system calls, without which commands cannot be kept from sockets.
    pub seccomp: bool,
}

impl Report {
    /// Tries everything. `helper` is as for [`Sandbox::wrap`].
    pub async fn make(helper: Option<&Path>) -> Result<Self> {
        if helper.is_none() && !is_ready() {
            return Err(Error::NoHelper);
        }
        let helper = helper.unwrap_or(Path::new(THIS_PROGRAM)).to_str().ok_or(Error::SandboxPath)?;
        let mut command = Command::new([helper, REPORT], "/", Environment::of_this_process());
        command.arg0 = Some(SANDBOX.into());
        let done = run(&command, Limits::default(), &CancellationToken::new(), |_, _| {}).await?;
        // Without a readable report, no mechanism counts as working.
        Ok(serde_json::from_slice(&done.stdout).unwrap_or_default())
    }

    /// Whether every sandbox can be enforced.
    pub fn is_complete(&self) -> bool {
        self.namespaces && self.landlock && self.seccomp
    }

    /// Whether this sandbox can be enforced. Where it cannot, its commands are refused.
    pub fn enforces(&self, sandbox: &Sandbox) -> bool {
        let files = match sandbox.mechanism {
            Mechanism::Best => {
                self.namespaces || self.bubblewrap || (self.landlock && sandbox.has_only_whole_folders())
            }
            // Where our namespaces work, those of bubblewrap do, too; if it is missing, the helper fails with an error.
            Mechanism::Bubblewrap => self.namespaces || self.bubblewrap,
            Mechanism::Landlock => self.landlock && sandbox.exceptions.is_empty(),
        };
        files && self.seccomp
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mechanisms = [
            ("namespaces", self.namespaces),
            ("bubblewrap", self.bubblewrap),
            ("Landlock", self.landlock),
            ("seccomp", self.seccomp),
        ];
        let found: Vec<_> = mechanisms.into_iter().filter_map(|(name, works)| works.then_some(name)).collect();
        f.write_str(if found.is_empty() { "nothing" } else { "" })?;
        f.write_str(&found.join(", "))
    }
}

/// What the helper prints. It has nothing else to do, so it may end up confined itself.
pub(super) fn print() -> i32 {
    let nothing = Sandbox::new_read_only(false);
    let (root, argv) = (Path::new("/"), ["true".into()]);
    let namespaces = matches!(namespaces::run(&nothing, root, &argv, &mut None), Ok(0));
    let bubblewrap = !namespaces && bubblewrap::works(&nothing, root, &argv);
    let report = Report {
        namespaces,
        bubblewrap,
        landlock: landlock::confine(&nothing).is_ok(),
        seccomp: seccomp::restrict(&nothing).is_ok(),
    };
    match serde_json::to_string(&report) {
        Ok(text) => println!("{text}"),
        Err(_) => return super::helper::USAGE,
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::WritableRoot;

    #[test]
    fn a_report_enforces_a_sandbox_only_with_a_sufficient_mechanism() {
        let whole = WritableRoot { path: "/w".into(), identity: None, protected: vec![], absent: vec![] };
        let partly =
            WritableRoot { path: "/w".into(), identity: None, protected: vec!["/w/.git".into()], absent: vec![] };
        let sandbox = |writable, network, mechanism| Sandbox { writable, mechanism, ..Sandbox::new_read_only(network) };
        let read_only = sandbox(vec![], false, Mechanism::Best);
        let folder = sandbox(vec![whole], false, Mechanism::Best);
        let workspace = sandbox(vec![partly.clone()], false, Mechanism::Best);
        let online = sandbox(vec![partly.clone()], true, Mechanism::Best);
        let asked = sandbox(vec![partly], true, Mechanism::Landlock);
        let all = [&read_only, &folder, &workspace, &online, &asked];
        let none = Report::default();
        let landlock = Report { landlock: true, seccomp: true, ..none };
        for (report, expected) in [
            (none, [false; 5]),
            (landlock, [true, true, false, false, true]),
            (Report { namespaces: true, ..none }, [false; 5]),
            (Report { bubblewrap: true, ..landlock }, [true; 5]),
            (Report { namespaces: true, ..landlock }, [true; 5]),
        ] {
            assert_eq!(all.map(|sandbox| report.enforces(sandbox)), expected, "{report}");
        }
        assert_eq!((none.to_string(), landlock.to_string()), ("nothing".into(), "Landlock, seccomp".into()));
    }
}
