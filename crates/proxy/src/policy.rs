//! The policy of a proxy: the hosts that can be reached without a decision.

use crate::Domains;

#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub domains: Domains,
    pub mode: Mode,
    /// Whether local addresses can be reached like all others. Otherwise only those that are listed by name.
    pub allow_local: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Only HTTP requests with safe methods, and no tunnels.
    Limited,
    #[default]
    Full,
}
