//! Calls of one thread to its model.

use std::sync::Arc;

use loomd_protocol::ResponseItem;

use crate::{Events, ModelError, Provider, Request};

/// Connections to providers, shared by all sessions of a process. Nothing is set up before it is used.
#[derive(Default)]
pub struct Http {}

impl Http {
    pub fn new(_env: &dyn Fn(&str) -> Option<String>) -> Arc<Self> {
        Arc::default()
    }
}

/// Who is calling, as providers are told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    pub user_agent: String,
    pub originator: String,
    pub version: String,
}

pub struct Session {
    provider: Arc<Provider>,
    _http: Arc<Http>,
    _identity: Identity,
}

impl Session {
    pub fn new(provider: Arc<Provider>, http: Arc<Http>, identity: Identity) -> Self {
        Self { provider, _http: http, _identity: identity }
    }

    /// Calls the model once. A request that fails before its answer begins is tried again inside.
    pub async fn stream(&mut self, _request: &Request) -> Result<Events, ModelError> {
        Err(ModelError::Disconnected { message: "not there yet".into(), retry_after: None })
    }

    /// Has the provider shorten the conversation.
    pub async fn compact(&mut self, _request: &Request) -> Result<Vec<ResponseItem>, ModelError> {
        Err(ModelError::Disconnected { message: "not there yet".into(), retry_after: None })
    }

    /// Gives up on the websocket for good. True if it was in use until now.
    pub fn fall_back_to_http(&mut self) -> bool {
        false
    }

    /// Connects and tells the provider what is known before the first turn.
    pub async fn warm_up(&mut self, _request: &Request) {}

    pub fn provider(&self) -> &Provider {
        &self.provider
    }
}
