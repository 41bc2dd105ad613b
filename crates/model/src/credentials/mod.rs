//! What a call is authenticated with. A provider has one source of it; whether a refused call is worth
//! another try is the source's to say.

mod command;

use std::pin::Pin;

use loomd_protocol::Secret;

pub(crate) use command::CommandCredentials;

use crate::ModelError;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where bearer tokens come from. Shared by all threads that use it.
pub trait Credentials: Send + Sync {
    /// The token to use now; `None` to call without one.
    fn bearer(&self) -> BoxFuture<'_, Result<Option<Bearer>, ModelError>>;

    /// A call with this token was answered 401, for the `refusals`th time, counted from 1. True if another
    /// try may go better.
    fn recover<'a>(&'a self, refused: &'a Bearer, refusals: u32) -> BoxFuture<'a, Result<bool, ModelError>>;
}

#[derive(Clone, Debug, PartialEq)]
pub struct Bearer {
    pub token: Secret,
    pub kind: BearerKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum BearerKind {
    Key,
    /// A sign-in with ChatGPT, which has its own address.
    Chatgpt {
        account_id: Option<String>,
    },
}

impl Bearer {
    pub fn key(token: Secret) -> Self {
        Self { token, kind: BearerKind::Key }
    }

    pub(crate) fn is_chatgpt(&self) -> bool {
        matches!(self.kind, BearerKind::Chatgpt { .. })
    }
}

/// A token that never changes, or nothing, or why there is nothing.
pub(crate) struct FixedCredentials(pub Result<Option<Bearer>, ModelError>);

impl Credentials for FixedCredentials {
    fn bearer(&self) -> BoxFuture<'_, Result<Option<Bearer>, ModelError>> {
        Box::pin(std::future::ready(self.0.clone()))
    }

    fn recover<'a>(&'a self, _: &'a Bearer, _: u32) -> BoxFuture<'a, Result<bool, ModelError>> {
        Box::pin(std::future::ready(Ok(false)))
    }
}
