//! What may be reached without asking.

use crate::Domains;

#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub domains: Domains,
    pub mode: Mode,
    /// Whether addresses of this machine and its network may be reached like all others. Without it only those may
    /// that are listed by themselves.
    pub allow_local: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Only requests that change nothing, and that can be seen to.
    Limited,
    #[default]
    Full,
}
