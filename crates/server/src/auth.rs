//! Authentication of websocket clients: none, a capability token or a signed bearer token.
//!
//! Flags become a [`Policy`], which reads its secret when the listener starts; each upgrade is then
//! checked by [`Guard::check`]. Secrets are compared in constant time and never printed.

mod guard;
mod jwt;
mod policy;

pub use guard::Guard;
pub use policy::{AuthError, Flags, Mode, Policy};
