//! Requests of a server: elicitations. Everything else that a server may request of a client is refused.

use std::sync::Arc;

use loomd_protocol::JsonValue;
use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::{ClientConfig, ClientResult, CustomResult, ErrorCode, RequestId, ServerNotification, ServerRequest};
use rmcp::service::{NotificationContext, RequestContext, RoleClient, Service};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::caller::Caller;
use crate::elicitation::{Elicitation, ElicitationAnswer, OPENAI_FORM};
use crate::in_flight::{CallEntry, InFlight};
use crate::limits::MAX_SERVER_REQUESTS;

/// The threads that use a server, each once.
#[derive(Default)]
pub(crate) struct Users(Mutex<Vec<Arc<dyn Caller>>>);

impl Users {
    pub fn add(&self, user: Arc<dyn Caller>) {
        self.0.lock().push(user);
    }

    pub fn remove(&self, user: &Arc<dyn Caller>) {
        self.0.lock().retain(|other| !Arc::ptr_eq(other, user));
    }

    /// The only user.
    fn only(&self) -> Option<Arc<dyn Caller>> {
        match &**self.0.lock() {
            [user] => Some(Arc::clone(user)),
            _ => None,
        }
    }
}

/// Serves the requests of one server.
pub(crate) struct Inbound {
    server: String,
    info: ClientConfig,
    calls: Arc<InFlight>,
    users: Arc<Users>,
    open: Semaphore,
    /// Cancelled when the connection has ended.
    closed: CancellationToken,
    /// Whether forms of any shape are passed on.
    openai_form: bool,
}

/// The request on whose answer stream a server's request came, in its extensions.
#[derive(Clone)]
pub(crate) struct OriginOf(pub RequestId);

impl Inbound {
    pub fn new(
        server: String,
        info: ClientConfig,
        calls: Arc<InFlight>,
        users: Arc<Users>,
        closed: CancellationToken,
    ) -> Self {
        Self { server, info, calls, users, open: Semaphore::new(MAX_SERVER_REQUESTS), closed, openai_form: false }
    }

    /// Passes forms of any shape on, or refuses them.
    pub fn with_openai_form(self, openai_form: bool) -> Self {
        Self { openai_form, ..self }
    }

    async fn elicit(
        &self,
        decoded: Result<Elicitation, String>,
        cx: RequestContext<RoleClient>,
    ) -> Result<JsonValue, ErrorData> {
        let Ok(_open) = self.open.try_acquire() else {
            return Err(ErrorData::new(ErrorCode(-32000), "too many open elicitations", None));
        };
        let elicitation = decoded.map_err(|problem| ErrorData::new(ErrorCode::METHOD_NOT_FOUND, problem, None))?;
        let origin = cx.extensions.get::<OriginOf>().map(|origin| origin.0.clone());
        let (call, withdrawn) = (self.calls.of_elicitation(origin.as_ref()), CancellationToken::new());
        let mut answer = std::pin::pin!(self.answer(elicitation, call, withdrawn.clone()));
        let ended = async {
            tokio::select! {
                () = cx.ct.cancelled() => {}
                () = self.closed.cancelled() => {}
            }
        };
        let answer = tokio::select! {
            answer = &mut answer => answer,
            () = ended => {
                withdrawn.cancel();
                answer.await
            }
        };
        serde_json::to_value(answer).map_err(|error| ErrorData::new(ErrorCode(-32603), error.to_string(), None))
    }

    async fn answer(
        &self,
        elicitation: Elicitation,
        call: Option<Arc<CallEntry>>,
        withdrawn: CancellationToken,
    ) -> ElicitationAnswer {
        match call {
            Some(call) => {
                let _open = call.elicits();
                call.caller.elicit(elicitation, withdrawn).await
            }
            None if !self.calls.is_empty() => ElicitationAnswer::decline(),
            None => match self.users.only() {
                Some(user) => user.elicit(elicitation, withdrawn).await,
                None => ElicitationAnswer::decline(),
            },
        }
    }
}

impl Service<RoleClient> for Inbound {
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        match request {
            ServerRequest::PingRequest(_) => Ok(ClientResult::empty(())),
            ServerRequest::CustomRequest(request) if request.method == "elicitation/create" => {
                let decoded = Elicitation::decode(&self.server, request.params);
                Ok(ClientResult::CustomResult(CustomResult(self.elicit(decoded, context).await?)))
            }
            ServerRequest::CustomRequest(request) if request.method == OPENAI_FORM && self.openai_form => {
                let decoded = Elicitation::decode_openai_form(&self.server, request.params);
                Ok(ClientResult::CustomResult(CustomResult(self.elicit(decoded, context).await?)))
            }
            _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "Method not found", None)),
        }
    }

    async fn handle_notification(
        &self,
        _: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        self.info.clone()
    }
}
