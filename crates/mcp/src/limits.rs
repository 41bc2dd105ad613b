//! Bounds on what a server can make us hold or do, beside their reasons.

use std::time::Duration;

/// The largest message of a server. Images are sent as base64 in one message, and the largest that models take are
/// well below this.
pub const MAX_MESSAGE: usize = 32 << 20;

/// The largest result of a tool that is passed on. Beyond it texts are cut and other blocks left out, because every
/// subscriber and the rollout get a copy.
pub const MAX_RESULT: usize = 8 << 20;

/// The most tools of one server. No model takes that many.
pub const MAX_TOOLS: usize = 2048;

/// The most pages of one listing, in case a server never ends it.
pub(crate) const MAX_PAGES: usize = 256;

/// The most entries of one listing of resources.
pub(crate) const MAX_RESOURCES: usize = 10_000;

/// Requests of a server that may be open at once; more are refused.
pub(crate) const MAX_SERVER_REQUESTS: usize = 16;

/// Messages that wait for a server to read its input. A server that does not read fails its calls.
pub(crate) const MAX_UNSENT: usize = 64;

/// Messages of a server that wait to be handled, for transports that read several streams.
pub(crate) const MAX_UNHANDLED: usize = 4;

/// The longest line of a server's stderr that is logged; the rest of it is dropped.
pub(crate) const MAX_LOGGED_LINE: usize = 4 << 10;

/// How much of the body of an unexpected HTTP response goes into the error.
pub(crate) const MAX_ERROR_BODY: usize = 8 << 10;

/// How long a stdio server has to end after its input is closed and it got a SIGTERM.
pub(crate) const STOPPING: Duration = Duration::from_secs(2);

/// How long the end of an HTTP session may take.
pub(crate) const ENDING_SESSION: Duration = Duration::from_secs(2);

/// A server that was not called for this long is stopped, and started again by the next call.
pub(crate) const IDLE: Duration = Duration::from_secs(30 * 60);

/// The longest pause between attempts to open the stream of an HTTP server's own messages.
pub(crate) const MAX_STREAM_PAUSE: Duration = Duration::from_secs(60);
