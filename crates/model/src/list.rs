//! The models that a provider lists.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use loomd_config::config_toml::WireApi;
use loomd_protocol::JsonValue;

use crate::call::{Call, Caller};
use crate::refusal::{ErrorDetail, Refusal};
use crate::{Http, Identity, ModelError, Provider, anthropic};

/// Large routers list hundreds of models in a few megabytes.
const MAX_LIST: usize = 16 * 1024 * 1024;

/// Returns the names of the provider's models, sorted. Has no timeout for the body; the caller sets one.
pub async fn list_models(
    provider: &Arc<Provider>,
    http: &Arc<Http>,
    identity: &Identity,
) -> Result<Vec<String>, ModelError> {
    let caller = Caller { provider: Arc::clone(provider), http: Arc::clone(http), identity: identity.clone() };
    let headers = match provider.wire() {
        WireApi::Anthropic => anthropic::headers(),
        WireApi::Responses | WireApi::Chat => HeaderMap::new(),
    };
    let (method, accept) = (Method::GET, "application/json");
    let call = Call { method, route: "/models", accept, headers, body: Bytes::new(), to_error };
    let called = caller.call(&call).await?;
    let body = called.answer.body.read(MAX_LIST).await;
    let body = body.map_err(|error| ModelError::unanswered(called.url, error))?;
    let body: JsonValue = serde_json::from_slice(&body).map_err(|error| ModelError::disconnected(error.to_string()))?;
    Ok(names(&body))
}

fn to_error(refusal: &Refusal<'_>) -> ModelError {
    refusal.unexpected(&ErrorDetail::parse_any(refusal.body))
}

/// Finds the models under `data`, under `models`, or in a bare list.
fn names(body: &JsonValue) -> Vec<String> {
    let list = [&body["data"], &body["models"], body].into_iter().find_map(JsonValue::as_array);
    let name = |model: &JsonValue| model["id"].as_str().or(model["slug"].as_str()).map(str::to_owned);
    let mut names: Vec<_> = list.into_iter().flatten().filter_map(name).collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn model_lists_are_read_in_every_known_form() {
        for body in [
            json!({ "object": "list", "data": [{ "id": "b" }, { "id": "a" }, { "id": "b" }, {}] }),
            json!({ "models": [{ "slug": "a" }, { "slug": "b" }] }),
            json!([{ "id": "a" }, { "id": "b" }]),
        ] {
            assert_eq!(names(&body), ["a", "b"], "{body}");
        }
        assert_eq!(names(&json!({ "data": 5 })), Vec::<String>::new());
    }
}
