//! The model calls of one thread, on any wire.

use std::sync::Arc;

use loomd_config::config_toml::WireApi;
use loomd_protocol::ResponseItem;

use crate::anthropic::Anthropic;
use crate::call::Caller;
use crate::chat::Chat;
use crate::http::Http;
use crate::meter::{CallMeter, MeteredCall};
use crate::rehearsal::Rehearsal;
use crate::responses::Responses;
use crate::{Events, ModelError, Provider, Request};

/// How this client identifies itself to providers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    pub user_agent: String,
    pub originator: String,
    pub version: String,
    /// The region in which an administrator requires data to stay.
    pub residency: Option<&'static str>,
}

/// The model calls of one thread.
pub struct Session {
    provider: Arc<Provider>,
    wire: Wire,
}

enum Wire {
    Responses(Box<Responses>),
    Chat(Box<Chat>),
    Anthropic(Box<Anthropic>),
    Rehearsal(Rehearsal),
}

impl Session {
    pub fn new(provider: Arc<Provider>, http: Arc<Http>, identity: Identity) -> Self {
        let caller = Caller { provider: Arc::clone(&provider), http, identity };
        let wire = match provider.wire() {
            _ if provider.is_rehearsal() => Wire::Rehearsal(Rehearsal::new(provider.scenario())),
            WireApi::Responses => Wire::Responses(Box::new(Responses::new(caller))),
            WireApi::Chat => Wire::Chat(Box::new(Chat::new(caller))),
            WireApi::Anthropic => Wire::Anthropic(Box::new(Anthropic::new(caller))),
        };
        Self { provider, wire }
    }

    /// Calls the model once. A request that fails before its response begins is retried internally. `meter` is told how
    /// the call ended, whatever becomes of it.
    pub async fn stream(&mut self, request: &Request, meter: CallMeter) -> Result<Events, ModelError> {
        let mut call = MeteredCall::begin(&self.provider, &request.model, meter);
        match self.recorded(request).await {
            Ok(events) => Ok(events.metered(call)),
            Err(error) => {
                call.failed(&error);
                Err(error)
            }
        }
    }

    async fn recorded(&mut self, request: &Request) -> Result<Events, ModelError> {
        let events = self.call(request).await;
        match (self.provider.recorder(), events) {
            (None, events) => events,
            (Some(recorder), Ok(events)) => Ok(recorder.record(request, events)),
            (Some(recorder), Err(error)) => {
                recorder.record_refusal(request, &error);
                Err(error)
            }
        }
    }

    async fn call(&mut self, request: &Request) -> Result<Events, ModelError> {
        match &mut self.wire {
            Wire::Responses(responses) => responses.stream(request).await,
            Wire::Chat(chat) => chat.stream(request).await,
            Wire::Anthropic(anthropic) => anthropic.stream(request).await,
            Wire::Rehearsal(rehearsal) => rehearsal.stream(request),
        }
    }

    /// Lets the provider compact the conversation, where [`Provider::supports_compaction`] is true.
    pub async fn compact(&mut self, request: &Request, meter: CallMeter) -> Result<Vec<ResponseItem>, ModelError> {
        let mut call = MeteredCall::begin(&self.provider, &request.model, meter);
        let compacted = match &mut self.wire {
            Wire::Responses(responses) => responses.compact(request).await,
            Wire::Rehearsal(rehearsal) => rehearsal.compact(request).map(|items| (items, None)),
            _ => Err(ModelError::Unsupported(format!("provider `{}` does not support compaction", self.provider.id()))),
        };
        match &compacted {
            Ok((_, usage)) => call.completed(usage.as_ref()),
            Err(error) => call.failed(error),
        }
        compacted.map(|(items, _)| items)
    }

    /// Gives up the websocket for the rest of the session. Returns whether it was in use until now.
    pub fn fall_back_to_http(&mut self) -> bool {
        match &mut self.wire {
            Wire::Responses(responses) => responses.fall_back_to_http(),
            _ => false,
        }
    }

    /// Opens the websocket, if there is one, and sends everything but the input, so that the first turn does not wait
    /// for it. A failure surfaces in the first call.
    pub async fn warm_up(&mut self, request: &Request) {
        if let Wire::Responses(responses) = &mut self.wire {
            responses.warm_up(request).await;
        }
    }

    pub fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }
}
