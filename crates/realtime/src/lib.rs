//! Realtime sessions: a voice conversation with a model over a websocket. [`Session`] owns the connection and its
//! bounded queues, [`Dialect`] is what the two versions of the wire say, as plain functions from events to events.
//!
//! Knows neither threads nor turns: a handoff is an [`Event`] that carries the text of a request, and what the agent
//! answers comes back as [`Input`].

mod dialect;
mod endpoint;
mod playback;
mod session;
mod session_update;
mod transcript;

pub use dialect::{Closing, Dialect, Event, Input, Step, Usage};
pub use endpoint::{Endpoint, EndpointError};
pub use session::{Connection, InputQueue, QueueFull, Session};
pub use session_update::{Kind, SessionSettings, Version};
