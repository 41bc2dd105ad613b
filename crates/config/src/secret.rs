//! How `config/read` shows secrets.

use std::collections::BTreeMap;

pub use loomd_protocol::Secret;
use serde::{Serialize, Serializer};

/// `serialize_with` for `config/read`: reveals secrets, because a client that edits the user's file through the server
/// must see its content.
pub(crate) fn as_written<S: Serializer>(value: &impl AsWritten, serializer: S) -> Result<S::Ok, S::Error> {
    value.written().serialize(serializer)
}

pub(crate) trait AsWritten {
    fn written(&self) -> impl Serialize;
}

impl AsWritten for Option<Secret> {
    fn written(&self) -> impl Serialize {
        self.as_ref().map(Secret::reveal)
    }
}

impl AsWritten for Option<BTreeMap<String, Secret>> {
    fn written(&self) -> impl Serialize {
        self.as_ref().map(AsWritten::written)
    }
}

impl AsWritten for BTreeMap<String, Secret> {
    fn written(&self) -> impl Serialize {
        self.iter().map(|(key, value)| (key, value.reveal())).collect::<BTreeMap<_, _>>()
    }
}
