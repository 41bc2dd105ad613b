//! The console: a web page that is a client of the app-server, embedded in the program.
//!
//! [`Console`] answers the HTTP requests of the page and admits its websockets; links and sessions are kept by
//! [`Access`], and [`Role`] decides which messages of a session are accepted. The crate opens no port and knows no
//! thread; the page speaks the same protocol as every other client.

mod access;
mod console;
mod files;
mod origin;
mod qr;
mod role;

pub use access::{Access, AccessError, Grant};
pub use console::{Console, SOCKET, Session};
pub use origin::{Origin, OriginError};
pub use qr::qr_code;
pub use role::Role;
