//! Evaluates typed prompts by an app-server: a prompt and a type go in, a value of the type comes out, and an agent
//! with tools, commands and files works in between.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use loomd_adapter::{Adapter, Endpoint, Limits, Prompt, Section, Session};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Summary {
//!     title: String,
//!     files: Vec<String>,
//! }
//!
//! let prompt = Prompt::new("demo", "summary")
//!     .section(Section::new("task", "Task", "Summarise the files in ${folder}."))
//!     .param("folder", "src")
//!     .build()?;
//! let adapter = Adapter::new(Endpoint::spawn("loomd"));
//! let response = adapter.evaluate::<Summary>(&prompt, &mut Session::new(), Limits::none()).await?;
//! println!("{}: {:?}", response.output.title, response.output.files);
//! # Ok(())
//! # }
//! ```
//!
//! * [`Adapter`]: the server and the settings. Any server of the protocol works: spawned, at a websocket, in this
//!   process (feature `in-process`).
//! * [`Prompt`]: [`Section`]s of markdown with parameters, and [`Tool`]s, typed functions of this program.
//! * [`Output`]: [`Text`], or any type with a JSON Schema, which is made strict.
//! * [`Session`]: typed slices that tools change in transactions, the events, and the thread to go on with.
//! * [`Workspace`]: copies of host files to work on.
//! * [`Limits`]: a deadline, and a budget of tokens that is enforced while the turn runs.
//! * [`EvaluateError`]: what failed, in which phase; or sections that a tool wants to be shown.
//!
//! [`mapping`] maps the names of the Python adapter that this one follows.

mod adapter;
mod approvals;
mod auth;
mod context;
mod error;
mod evaluate;
mod event;
mod expansion;
mod hex;
mod limits;
#[doc = include_str!("../MAPPING.md")]
pub mod mapping {}
mod mcp;
mod output;
mod prompt;
mod schema;
mod session;
mod tool;
mod workspace;

pub use adapter::{Adapter, Response};
pub use approvals::ApprovalPolicy;
pub use auth::{Auth, DynTokenSource, TokenError, TokenRequest, TokenSource, Tokens};
pub use context::ToolContext;
pub use error::{EvaluateError, Failure, FailureKind, Phase};
pub use event::{Event, PromptExecuted, PromptRendered, ToolInvoked, ToolSource};
pub use expansion::{Expansion, SectionRequest};
pub use limits::{Budget, BudgetTracker, Exceeded, Limits, TokenUsage};
pub use loomd_client::protocol;
pub use loomd_client::{Endpoint, Program, Websocket};
pub use mcp::McpServer;
pub use output::{Output, Text};
pub use prompt::{Prompt, PromptBuilder, PromptError, Rendered, Section};
pub use schema::SchemaError;
pub use session::{Session, Slices, ThreadState};
pub use tool::{IntoToolOutput, Json, NoParams, Tool, ToolError, ToolOutput};
pub use workspace::{HostMount, MountPreview, Workspace, WorkspaceBuilder, WorkspaceError};
