//! How a client behaves: who it says it is, how long it waits, what it does when the server is busy or gone.

use std::sync::Arc;
use std::time::Duration;

use loomd_protocol::{AskForApproval, ClientInfo, SandboxMode, ThreadStartParams};

use crate::handler::{DeclineAll, DynHandler, Handler};

/// Everything has a default; set what should differ.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// The name goes into headers of model calls, so it must be fit for that.
    pub client: ClientInfo,
    /// Allows experimental methods and fields.
    pub experimental_api: bool,
    /// Notifications that the server need not send.
    pub opt_out: Vec<String>,
    /// How long an answer is waited for. `command/exec`, which is answered when the command ends, is not timed.
    pub request_timeout: Option<Duration>,
    /// How long a turn may go on without any event before it is given up. Time in which the [`Handler`] works on a
    /// request of the thread does not count.
    pub turn_timeout: Option<Duration>,
    /// What to do about a server that has too much to do.
    pub retry: Backoff,
    /// What to do about a connection that is lost; by default, nothing.
    pub reconnect: Option<Backoff>,
    /// Defaults for [`Client::start_thread`](crate::Client::start_thread). What is `None` is the server's choice.
    pub thread: ThreadDefaults,
    pub(crate) handler: Arc<dyn DynHandler>,
}

/// Used where the params of `thread/start` say nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadDefaults {
    pub model: Option<String>,
    pub cwd: Option<String>,
    pub approval_policy: Option<AskForApproval>,
    pub sandbox: Option<SandboxMode>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            client: ClientInfo {
                name: env!("CARGO_PKG_NAME").into(),
                title: None,
                version: env!("CARGO_PKG_VERSION").into(),
            },
            experimental_api: true,
            opt_out: Vec::new(),
            request_timeout: Some(Duration::from_secs(30)),
            turn_timeout: Some(Duration::from_secs(5 * 60)),
            retry: Backoff::default(),
            reconnect: None,
            thread: ThreadDefaults::default(),
            handler: Arc::new(DeclineAll),
        }
    }
}

impl Options {
    /// The options of a program with this name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { client: ClientInfo { name: name.into(), title: None, version: version.into() }, ..Self::default() }
    }

    /// Who answers the server's requests: approvals, tools, questions. Without one everything is refused.
    pub fn handler(mut self, handler: impl Handler) -> Self {
        self.handler = Arc::new(handler);
        self
    }

    pub fn experimental_api(mut self, allowed: bool) -> Self {
        self.experimental_api = allowed;
        self
    }

    pub fn request_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.request_timeout = timeout.into();
        self
    }

    pub fn turn_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.turn_timeout = timeout.into();
        self
    }

    pub fn retry(mut self, backoff: Backoff) -> Self {
        self.retry = backoff;
        self
    }

    /// Connects again when the connection is lost, and resumes the threads that were open.
    pub fn reconnect(mut self, backoff: Backoff) -> Self {
        self.reconnect = Some(backoff);
        self
    }

    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.thread.model = Some(model.into());
        self
    }

    /// A path on the server's machine.
    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.thread.cwd = Some(cwd.into());
        self
    }

    pub fn approval_policy(mut self, policy: AskForApproval) -> Self {
        self.thread.approval_policy = Some(policy);
        self
    }

    pub fn sandbox(mut self, sandbox: SandboxMode) -> Self {
        self.thread.sandbox = Some(sandbox);
        self
    }
}

impl ThreadDefaults {
    pub(crate) fn fill(&self, params: ThreadStartParams) -> ThreadStartParams {
        ThreadStartParams {
            model: params.model.or_else(|| self.model.clone()),
            cwd: params.cwd.or_else(|| self.cwd.clone()),
            approval_policy: params.approval_policy.or_else(|| self.approval_policy.clone()),
            sandbox: params.sandbox.or(self.sandbox),
            ..params
        }
    }
}

/// Trying again: how often, and after which pauses. Each pause is twice the one before, and its length is drawn
/// at random from its upper half, so that clients who were refused together do not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Further attempts after the first.
    pub attempts: u32,
    pub first: Duration,
    pub longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { attempts: 6, first: Duration::from_millis(100), longest: Duration::from_secs(5) }
    }
}

impl Backoff {
    /// No second attempt.
    pub const NEVER: Self = Self { attempts: 0, first: Duration::ZERO, longest: Duration::ZERO };

    pub(crate) fn pauses(self) -> impl Iterator<Item = Duration> {
        (0..self.attempts).map(move |attempt| {
            let full = self.first.saturating_mul(1u32.checked_shl(attempt).unwrap_or(u32::MAX)).min(self.longest);
            full.mul_f64(0.5 + 0.5 * fastrand::f64())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_in_the_upper_half_of_their_range() {
        let backoff = Backoff { attempts: 40, first: Duration::from_millis(100), longest: Duration::from_millis(500) };
        let pauses: Vec<_> = backoff.pauses().collect();
        assert_eq!(pauses.len(), 40);
        for (pause, full) in pauses.iter().zip([100, 200, 400].into_iter().chain(std::iter::repeat(500))) {
            let full = Duration::from_millis(full);
            assert!((full / 2..=full).contains(pause), "{pause:?} of {full:?}");
        }
        assert_eq!(Backoff::NEVER.pauses().count(), 0);
    }
}
