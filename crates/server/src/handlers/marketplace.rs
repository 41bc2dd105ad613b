//! `marketplace/*`

use std::path::PathBuf;

use loomd_protocol::{
    AbsolutePathBuf, MarketplaceAddParams, MarketplaceAddResponse, MarketplaceRemoveParams, MarketplaceRemoveResponse,
    MarketplaceUpgradeParams, MarketplaceUpgradeResponse, RpcError, call,
};
use serde_json::json;

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::plugins::{self, MarketplaceError, Source};

/// `marketplace/add`: answered when the marketplace can be listed.
pub(crate) async fn add(cx: &Context, params: MarketplaceAddParams) -> Handled<call::MarketplaceAdd> {
    let MarketplaceAddParams { source, ref_name, sparse_paths } = params;
    let source = Source::parse(&source, ref_name, sparse_paths.unwrap_or_default()).map_err(wire_error)?;
    let _change = cx.app.plugins.change().await;
    let added = plugins::add(&cx.app.sources, source).await.map_err(wire_error)?;
    answer(MarketplaceAddResponse {
        marketplace_name: added.name,
        installed_root: absolute(added.root)?,
        already_added: added.already,
    })
}

/// `marketplace/remove`: a folder of the user stays.
pub(crate) async fn remove(cx: &Context, params: MarketplaceRemoveParams) -> Handled<call::MarketplaceRemove> {
    let _change = cx.app.plugins.change().await;
    let (sources, name) = (cx.app.sources.clone(), params.marketplace_name.clone());
    let removed = tokio::task::spawn_blocking(move || plugins::remove(&sources, &name)).await;
    let removed = removed.map_err(|error| RpcError::internal(error.to_string()))?.map_err(wire_error)?;
    answer(MarketplaceRemoveResponse {
        marketplace_name: params.marketplace_name,
        installed_root: removed.map(absolute).transpose()?,
    })
}

/// `marketplace/upgrade`: what fails is listed and keeps its copy.
pub(crate) async fn upgrade(cx: &Context, params: MarketplaceUpgradeParams) -> Handled<call::MarketplaceUpgrade> {
    let _change = cx.app.plugins.change().await;
    let upgraded = plugins::upgrade(&cx.app.sources, params.marketplace_name.as_deref()).await.map_err(wire_error)?;
    answer(MarketplaceUpgradeResponse {
        selected_marketplaces: upgraded.selected,
        upgraded_roots: upgraded.roots.into_iter().map(absolute).collect::<Result<_, _>>()?,
        errors: upgraded.errors,
    })
}

fn absolute(path: PathBuf) -> Result<AbsolutePathBuf, RpcError> {
    AbsolutePathBuf::new(&path).ok_or_else(|| RpcError::internal(format!("not absolute: {}", path.display())))
}

fn wire_error(error: MarketplaceError) -> RpcError {
    let message = error.to_string();
    match error {
        MarketplaceError::Refused(_) => RpcError::invalid_request(message),
        MarketplaceError::Plugin(error) if error.is_refusal() => RpcError::invalid_request(message),
        MarketplaceError::Git(_) => RpcError::internal(message).with_data(json!({ "reason": "gitFailed" })),
        _ => RpcError::internal(message),
    }
}
