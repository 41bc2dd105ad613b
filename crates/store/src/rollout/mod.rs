//! The rollout format: one JSON object per line, `{"timestamp", "type", "payload"}`. A [`Line`] is parsed
//! without decoding its payload; a [`Record`] is a decoded payload. Lines of kinds that this
//! release does not know are skipped when reading and survive when copied.

mod approval;
mod context;
mod event;
mod events;
mod extended;
mod lenient;
mod line;
mod record;
mod session_meta;
mod source;

pub use approval::{ApprovalAudit, AuditedDecider};
pub use context::{Compacted, NetworkAccess, ReadAccess, SandboxPolicy, TruncationPolicy, TurnContext};
pub use event::Event;
pub use events::*;
pub use extended::*;
pub use line::{Line, LineHeader, copy_line, now, whole_lines};
pub use record::{Record, write_line};
pub use session_meta::{BaseInstructions, SessionMeta, StoredGit};
pub use source::Source;
