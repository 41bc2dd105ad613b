//! [`Options`]: the client's identity, timeouts, retries and defaults.

use std::sync::Arc;
use std::time::Duration;

use loomd_protocol::{AskForApproval, ClientInfo, SandboxMode, ThreadStartParams};

use crate::handler::{DeclineAll, DynHandler, Handler};

/// Options of a [`Client`](crate::Client); each has a default.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Sent in `initialize`. The name becomes part of a header of model calls and must be valid there.
    pub client: ClientInfo,
    /// Allows experimental methods and fields.
    pub experimental_api: bool,
    /// Methods of notifications that the server shall not send.
    pub opt_out: Vec<String>,
    /// How long to wait for a response. Does not apply to `command/exec`, which is answered when the command ends.
    pub request_timeout: Option<Duration>,
    /// How long a turn may go without any event before it is interrupted. Time in which the [`Handler`] handles a
    /// request of the thread does not count.
    pub turn_timeout: Option<Duration>,
    /// How long a turn may take in all before it is interrupted, whatever it does; `None` is no limit.
    pub turn_limit: Option<Duration>,
    /// How to retry requests that the server refused as overloaded.
    pub retry: Backoff,
    /// How to reconnect after the connection was lost; `None` does not.
    pub reconnect: Option<Backoff>,
    /// Defaults for [`Client::start_thread`](crate::Client::start_thread); `None` leaves the choice to the server.
    pub thread: ThreadDefaults,
    pub(crate) handler: Arc<dyn DynHandler>,
}

/// Values for fields that the params of `thread/start` leave out.
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
            turn_limit: None,
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

    /// Sets the handler of server requests, in place of [`DeclineAll`].
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

    pub fn turn_limit(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.turn_limit = limit.into();
        self
    }

    pub fn retry(mut self, backoff: Backoff) -> Self {
        self.retry = backoff;
        self
    }

    /// Reconnects after the connection was lost, and resumes the open threads.
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
            sandbox: params.sandbox.or(self.sandbox.map(Into::into)),
            ..params
        }
    }
}

/// Attempts and pauses of a retry. Each pause is twice the one before, with a random length from the upper half of
/// its range, so that clients refused at the same time do not retry at the same time.
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
    /// No retry.
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
