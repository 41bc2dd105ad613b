//! Evaluations on a scripted server, and workspaces.

#![allow(clippy::unwrap_used)]

mod auth;
mod evaluating;
mod failing;
mod limits;
mod mock;
mod prompts;
mod reuse;
mod tools;
mod workspace;
mod workspace_properties;
