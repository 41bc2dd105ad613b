//! The pieces of an OAuth login in a browser, shared by the login of the account and those of MCP servers: the secrets
//! that tie a code to a login, queries and forms, and the local server that a browser is redirected to. Knows no issuer
//! and stores nothing.

pub mod callback;
mod query;
mod secrets;

pub use query::{encoded, field};
pub use secrets::LoginSecrets;
