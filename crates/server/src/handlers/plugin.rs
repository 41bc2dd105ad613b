//! `plugin/*`

use loomd_config::LoadedConfig;
use loomd_plugins::{ListRequest, PluginError, PluginId, PluginStates};
use loomd_protocol::{
    AbsolutePathBuf, Call, Level, MarketplaceLoadErrorInfo, PluginInstallParams, PluginInstallResponse,
    PluginInstalledParams, PluginInstalledResponse, PluginListMarketplaceKind, PluginListParams, PluginListResponse,
    PluginMarketplaceEntry, PluginReadParams, PluginReadResponse, PluginUninstallParams, PluginUninstallResponse,
    RpcError, call,
};
use loomd_skills::SkillRules;
use tokio::task::spawn_blocking;

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::plugins;

/// `plugin/list`
pub(crate) async fn list(cx: &Context, params: PluginListParams) -> Handled<call::PluginList> {
    let PluginListParams { cwds, force_remote_sync, marketplace_kinds, .. } = params;
    let wants_local = marketplace_kinds.is_none_or(|kinds| kinds.contains(&PluginListMarketplaceKind::Local));
    if !wants_local || !plugins::is_on(&load(cx)?) {
        return answer(PluginListResponse {
            marketplaces: Vec::new(),
            marketplace_load_errors: Vec::new(),
            remote_sync_error: None,
            featured_plugin_ids: Vec::new(),
        });
    }
    let remote_sync_error = match force_remote_sync {
        true => cx.app.plugins.sync(&cx.app.sources, &cx.app.accounts).await.err().map(|error| error.to_string()),
        false => None,
    };
    let (marketplaces, marketplace_load_errors) = listed(cx, cwds.unwrap_or_default()).await?;
    let has_curated = marketplaces.iter().any(|marketplace| marketplace.name == loomd_plugins::CURATED);
    let featured_plugin_ids = match has_curated {
        true => cx.app.plugins.featured(&cx.app.accounts).await,
        false => Vec::new(),
    };
    answer(PluginListResponse { marketplaces, marketplace_load_errors, remote_sync_error, featured_plugin_ids })
}

/// `plugin/installed`: marketplaces with installed plugins, and plugins that are suggested.
pub(crate) async fn installed(cx: &Context, params: PluginInstalledParams) -> Handled<call::PluginInstalled> {
    if !plugins::is_on(&load(cx)?) {
        return answer(PluginInstalledResponse { marketplaces: Vec::new(), marketplace_load_errors: Vec::new() });
    }
    let (mut marketplaces, marketplace_load_errors) = listed(cx, params.cwds.unwrap_or_default()).await?;
    let suggested = params.install_suggestion_plugin_names.unwrap_or_default();
    for marketplace in &mut marketplaces {
        marketplace.plugins.retain(|plugin| plugin.installed || suggested.contains(&plugin.name));
    }
    marketplaces.retain(|marketplace| !marketplace.plugins.is_empty());
    answer(PluginInstalledResponse { marketplaces, marketplace_load_errors })
}

type Listed = (Vec<PluginMarketplaceEntry>, Vec<MarketplaceLoadErrorInfo>);

/// All marketplaces of the user and of working directories.
async fn listed(cx: &Context, cwds: Vec<AbsolutePathBuf>) -> Result<Listed, RpcError> {
    let loaded = load(cx)?;
    let (home, user_home) = (cx.app.sources.home.clone(), cx.app.sources.user_home.clone());
    let lenient = cx.client.level >= Level::V0_166;
    blocking(move || {
        let states = PluginStates::of(&loaded.stack);
        loomd_plugins::list(&ListRequest {
            home: &home,
            user_home: user_home.as_deref(),
            cwds: &cwds,
            states: &states,
            added: &plugins::added_roots(&home, &loaded.config.marketplaces),
            lenient,
        })
    })
    .await
}

/// `plugin/read`
pub(crate) async fn read(cx: &Context, params: PluginReadParams) -> Handled<call::PluginRead> {
    let loaded = load_enabled(cx)?;
    let marketplace =
        marketplace_path::<call::PluginRead>(cx, params.marketplace_path, params.remote_marketplace_name)?;
    let home = cx.app.sources.home.clone();
    let plugin = blocking(move || {
        let (states, rules) = (PluginStates::of(&loaded.stack), SkillRules::of(&loaded.stack));
        loomd_plugins::read(&home, &marketplace, &params.plugin_name, &states, &rules)
    });
    answer(PluginReadResponse { plugin: plugin.await?.map_err(failed)? })
}

/// `plugin/install`: answered when the plugin is in its place and enabled.
pub(crate) async fn install(cx: &Context, params: PluginInstallParams) -> Handled<call::PluginInstall> {
    load_enabled(cx)?;
    let marketplace =
        marketplace_path::<call::PluginInstall>(cx, params.marketplace_path, params.remote_marketplace_name)?;
    let (plugins, sources) = (&cx.app.plugins, &cx.app.sources);
    let _change = plugins.change().await;
    let home = sources.home.clone();
    let found = blocking(move || plugins::find(&home, &marketplace, &params.plugin_name)).await?.map_err(failed)?;
    if params.force_remote_sync {
        let enabled = plugins.enable_remote(&cx.app.accounts, &found.id).await;
        enabled.map_err(|error| RpcError::internal(format!("failed to enable remote plugin: {error}")))?;
    }
    let (home, installing) = (sources.home.clone(), found.clone());
    blocking(move || plugins::install(&home, &installing)).await?.map_err(failed)?;
    plugins::set_enabled(sources, std::slice::from_ref(&found.id), &[])
        .map_err(|error| RpcError::internal(format!("failed to enable plugin `{}`: {error}", found.id)))?;
    if found.has_servers {
        reload_mcp_servers(cx).await;
    }
    let loaded = load(cx)?;
    let apps = if plugins::has_apps(&loaded, &cx.app.accounts) { found.apps } else { Vec::new() };
    answer(PluginInstallResponse {
        auth_policy: found.auth_policy,
        apps_needing_auth: apps.iter().map(|id| loomd_plugins::app_summary(id)).collect(),
    })
}

/// `plugin/uninstall`: fine for a plugin that is not installed.
pub(crate) async fn uninstall(cx: &Context, params: PluginUninstallParams) -> Handled<call::PluginUninstall> {
    let id: PluginId = params.plugin_id.parse().map_err(failed)?;
    let (plugins, sources) = (&cx.app.plugins, &cx.app.sources);
    let _change = plugins.change().await;
    if params.force_remote_sync {
        let removed = plugins.uninstall_remote(&cx.app.accounts, &id).await;
        removed.map_err(|error| RpcError::internal(format!("failed to uninstall remote plugin: {error}")))?;
    }
    // Disabled first: a plugin without files is not active.
    plugins::set_enabled(sources, &[], std::slice::from_ref(&id))
        .map_err(|error| RpcError::internal(format!("failed to disable plugin `{id}`: {error}")))?;
    let home = sources.home.clone();
    blocking(move || loomd_plugins::PluginCache::new(&home).remove(&id)).await?.map_err(failed)?;
    reload_mcp_servers(cx).await;
    answer(PluginUninstallResponse {})
}

/// Gives the threads that are loaded the servers of the plugins that there are now.
async fn reload_mcp_servers(cx: &Context) {
    if let Err(error) = cx.app.agent.reload_mcp_servers().await {
        tracing::warn!(?error, "the MCP servers of threads were not reloaded");
    }
}

fn load(cx: &Context) -> Result<LoadedConfig, RpcError> {
    loomd_config::load(&cx.app.sources.request())
        .map_err(|error| RpcError::internal(format!("failed to reload config: {error}")))
}

fn load_enabled(cx: &Context) -> Result<LoadedConfig, RpcError> {
    let loaded = load(cx)?;
    if plugins::is_on(&loaded) { Ok(loaded) } else { Err(RpcError::invalid_request("plugins feature is disabled")) }
}

/// The marketplace that a request names. Those of the vendor's service are not served.
fn marketplace_path<C: Call>(
    cx: &Context,
    path: Option<AbsolutePathBuf>,
    remote: Option<String>,
) -> Result<AbsolutePathBuf, RpcError> {
    match (path, remote) {
        (Some(path), None) => Ok(path),
        (None, Some(_)) => Err(RpcError::not_supported(C::METHOD)),
        (None, None) if cx.client.level < Level::V0_166 => {
            Err(RpcError::invalid_request("Invalid request: missing field `marketplacePath`"))
        }
        _ => Err(RpcError::invalid_request(format!(
            "{} requires exactly one of marketplacePath or remoteMarketplaceName",
            C::METHOD
        ))),
    }
}

fn failed(error: PluginError) -> RpcError {
    if error.is_refusal() {
        RpcError::invalid_request(error.to_string())
    } else {
        RpcError::internal(error.to_string())
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, RpcError> {
    spawn_blocking(work).await.map_err(|error| RpcError::internal(error.to_string()))
}
