//! Calls about services of the vendor and of model providers, which this server answers without them.

use loomd_protocol::{
    BedrockCheckGovCloudRequirementsResponse, IgnoredParams, ModelProviderCapabilitiesReadParams,
    ModelProviderCapabilitiesReadResponse, RemoteControlConnectionStatus, RemoteControlStatusReadResponse, RpcError,
    call,
};

use crate::answer::{Handled, answer};
use crate::context::Context;

/// `modelProvider/capabilities/read`
pub(crate) async fn provider_capabilities(
    _: &Context,
    _: ModelProviderCapabilitiesReadParams,
) -> Handled<call::ModelProviderCapabilitiesRead> {
    answer(ModelProviderCapabilitiesReadResponse { image_generation: true, web_search: true })
}

/// `account/workspaceMessages/read`
pub(crate) async fn workspace_messages(_: &Context, _: IgnoredParams) -> Handled<call::AccountWorkspaceMessagesRead> {
    Err(RpcError::invalid_request("codex account authentication required to read workspace messages"))
}

/// `account/bedrock/checkGovCloudRequirements`
pub(crate) async fn gov_cloud(_: &Context, _: IgnoredParams) -> Handled<call::AccountBedrockCheckGovCloudRequirements> {
    answer(BedrockCheckGovCloudRequirementsResponse { is_gov_cloud: false, should_warn: false })
}

/// `remoteControl/status/read`
pub(crate) async fn remote_control(cx: &Context, _: IgnoredParams) -> Handled<call::RemoteControlStatusRead> {
    answer(RemoteControlStatusReadResponse {
        status: RemoteControlConnectionStatus::Disabled,
        server_name: host_name(),
        installation_id: installation_id(&cx.app.sources.home),
        environment_id: None,
    })
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).unwrap_or_else(|| "localhost".into())
}

/// An id of the home: the same for every server that uses it, and not told by anything else.
fn installation_id(home: &std::path::Path) -> String {
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_URL, format!("{}:{}", host_name(), home.display()).as_bytes()).to_string()
}
