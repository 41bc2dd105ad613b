//! Credentials of model calls. A provider has one source of them, which also decides whether a call is retried after a
//! 401.

mod command;

use std::pin::Pin;

use loomd_protocol::Secret;

pub(crate) use command::CommandCredentials;

use crate::ModelError;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A source of bearer tokens, shared by all threads of a provider.
pub trait Credentials: Send + Sync {
    /// Returns the token for the next call; `None` to call without one.
    fn bearer(&self) -> BoxFuture<'_, Result<Option<Bearer>, ModelError>>;

    /// Called after a call with `refused` got a 401, for the `refusals`th time, counted from 1. Returns whether to try
    /// again, with the token that [`bearer`](Self::bearer) returns then.
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
    /// A ChatGPT sign-in, which is served by a URL of its own.
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

/// Credentials that never change: a token, none, or the error that explains why there are none.
pub(crate) struct FixedCredentials(pub Result<Option<Bearer>, ModelError>);

impl Credentials for FixedCredentials {
    fn bearer(&self) -> BoxFuture<'_, Result<Option<Bearer>, ModelError>> {
        Box::pin(std::future::ready(self.0.clone()))
    }

    fn recover<'a>(&'a self, _: &'a Bearer, _: u32) -> BoxFuture<'a, Result<bool, ModelError>> {
        Box::pin(std::future::ready(Ok(false)))
    }
}
