//! Models: the catalogue of known models, and the providers, each of which answers a request with one stream of
//! [`ModelEvent`]s, whatever its wire. Retries a request before its response begins; retrying a stream that broke is
//! the caller's task. Knows neither tools nor threads.
//!
//! Where to start: [`Session`] calls a model, [`Request`] is what it is sent, [`Catalogue`] is what is known about it.

mod anthropic;
mod call;
mod catalogue;
mod chat;
mod compose;
mod credentials;
mod error;
mod event;
mod event_json;
mod framing;
mod http;
mod idle;
mod input;
mod list;
mod meter;
mod provider;
mod rate_limits;
mod record;
mod refusal;
mod rehearsal;
mod request;
mod responses;
mod retry;
mod session;
pub mod sse;
mod stream;
mod tool_schema;
mod tools;
mod transcript;

pub use catalogue::{ApplyPatch, Catalogue, CatalogueError, ModelInfo, ShellTool, Truncation};
pub use credentials::{Bearer, BearerKind, BoxFuture, Credentials};
pub use error::ModelError;
pub use event::{Events, ModelEvent, ResponseHeaders};
pub use http::{Http, HttpError, HttpResponse, ResponseBody, TlsFiles, WebSocket, WebSocketError};
pub use input::{CONTEXT_PREFIXES, InputItem};
pub use list::list_models;
pub use loomd_protocol::TokenUsageBreakdown as TokenUsage;
pub use meter::{CallMeter, CallOutcome, CallReport};
pub use provider::Provider;
pub use rehearsal::Scenario;
pub use request::{CallHeaders, Reasoning, Request, TraceHeaders};
pub use retry::retry_delay;
pub use session::{Identity, Session};
pub use tool_schema::complete_schema;
pub use tools::{ToolSpec, Tools};
