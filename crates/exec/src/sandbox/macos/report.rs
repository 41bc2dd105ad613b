//! Which confinement works on this system.

use std::fmt;
use std::path::Path;

use super::seatbelt::PROGRAM;
use crate::Result;
use crate::sandbox::Sandbox;

/// The mechanisms that work here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Seatbelt, through `sandbox-exec`.
    pub seatbelt: bool,
}

impl Report {
    /// Looks for `sandbox-exec`; nothing has to be tried.
    pub async fn make(_helper: Option<&Path>) -> Result<Self> {
        Ok(Self { seatbelt: Path::new(PROGRAM).is_file() })
    }

    /// Whether every sandbox can be enforced. Not so here: one with loopback ports cannot.
    pub fn is_complete(&self) -> bool {
        false
    }

    /// Whether this sandbox can be enforced. Where it cannot, its commands are refused.
    pub fn enforces(&self, sandbox: &Sandbox) -> bool {
        self.seatbelt && sandbox.loopback_ports.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.seatbelt { "Seatbelt" } else { "nothing" })
    }
}
