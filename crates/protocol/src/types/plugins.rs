//! `plugin/*` and marketplaces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AbsolutePathBuf, AppSummary, JsonValue, SkillSummary};

/// Params of `plugin/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginListParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwds: Option<Vec<AbsolutePathBuf>>,
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub force_remote_sync: bool,
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub force_refetch: bool,
    /// Absent: all kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marketplace_kinds: Option<Vec<PluginListMarketplaceKind>>,
}

/// Where a marketplace comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PluginListMarketplaceKind {
    Local,
    Vertical,
    WorkspaceDirectory,
    SharedWithMe,
    CreatedByMeRemote,
}

/// Params of `plugin/installed`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginInstalledParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwds: Option<Vec<AbsolutePathBuf>>,
    /// Plugins that are listed although they are not installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install_suggestion_plugin_names: Option<Vec<String>>,
}

/// Result of `plugin/installed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginInstalledResponse {
    pub marketplaces: Vec<PluginMarketplaceEntry>,
    #[serde(default)]
    pub marketplace_load_errors: Vec<MarketplaceLoadErrorInfo>,
}

/// Params of `plugin/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginReadParams {
    /// Newer clients may omit it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marketplace_path: Option<AbsolutePathBuf>,
    pub plugin_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_marketplace_name: Option<String>,
}

/// Params of `plugin/install`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginInstallParams {
    /// Newer clients may omit it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marketplace_path: Option<AbsolutePathBuf>,
    pub plugin_name: String,
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub force_remote_sync: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_marketplace_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install_attempt_id: Option<String>,
}

/// Params of `plugin/uninstall`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginUninstallParams {
    pub plugin_id: String,
    #[serde(default, skip_serializing_if = "crate::serde_util::is_false")]
    pub force_remote_sync: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarketplaceInterface {
    pub display_name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarketplaceLoadErrorInfo {
    pub marketplace_path: AbsolutePathBuf,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PluginAuthPolicy {
    OnInstall,
    OnUse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PluginInstallPolicy {
    NotAvailable,
    Available,
    InstalledByDefault,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginInterface {
    pub display_name: Option<String>,
    pub short_description: Option<String>,
    pub long_description: Option<String>,
    pub developer_name: Option<String>,
    pub category: Option<String>,
    pub capabilities: Vec<String>,
    pub website_url: Option<String>,
    pub privacy_policy_url: Option<String>,
    pub terms_of_service_url: Option<String>,
    pub default_prompt: Option<Vec<String>>,
    pub brand_color: Option<String>,
    pub composer_icon: Option<AbsolutePathBuf>,
    pub logo: Option<AbsolutePathBuf>,
    pub screenshots: Vec<AbsolutePathBuf>,
    /// Sent for newer clients, which require it.
    #[serde(default)]
    pub screenshot_urls: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PluginMarketplaceEntry {
    pub name: String,
    pub path: AbsolutePathBuf,
    pub interface: Option<MarketplaceInterface>,
    pub plugins: Vec<PluginSummary>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PluginSource {
    Local { path: AbsolutePathBuf },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginSummary {
    pub id: String,
    pub name: String,
    pub source: PluginSource,
    pub installed: bool,
    pub enabled: bool,
    pub install_policy: PluginInstallPolicy,
    pub auth_policy: PluginAuthPolicy,
    pub interface: Option<PluginInterface>,
    /// The version in the plugin's manifest.
    #[serde(default)]
    pub local_version: Option<String>,
    #[serde(default)]
    pub keywords: Vec<String>,
    #[serde(default)]
    pub availability: PluginAvailability,
    // What only plugins of the vendor's service have.
    #[serde(default)]
    pub version: Option<String>,
    #[serde(default)]
    pub remote_plugin_id: Option<String>,
    #[serde(default)]
    pub installed_at: Option<i64>,
    #[serde(default)]
    pub disabled_reason: Option<PluginDisabledReason>,
    #[serde(default)]
    pub eligible_plan_types: Option<Vec<String>>,
    #[serde(default)]
    pub must_show_installation_interstitial: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PluginAvailability {
    DisabledByAdmin,
    #[default]
    Available,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PluginDisabledReason {
    DisabledByAdmin,
    PlanNotEligible,
    RequiredAppUnavailable,
    Unknown,
}

/// Result of `plugin/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginListResponse {
    pub marketplaces: Vec<PluginMarketplaceEntry>,
    #[serde(default)]
    pub marketplace_load_errors: Vec<MarketplaceLoadErrorInfo>,
    pub remote_sync_error: Option<String>,
    #[serde(default)]
    pub featured_plugin_ids: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginDetail {
    pub marketplace_name: String,
    pub marketplace_path: AbsolutePathBuf,
    pub summary: PluginSummary,
    pub description: Option<String>,
    pub skills: Vec<SkillSummary>,
    pub apps: Vec<AppSummary>,
    pub mcp_servers: Vec<String>,
    /// Sent for newer clients, which require it.
    #[serde(default)]
    pub app_templates: Vec<JsonValue>,
    /// Sent for newer clients, which require it.
    #[serde(default)]
    pub hooks: Vec<JsonValue>,
}

/// Result of `plugin/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PluginReadResponse {
    pub plugin: PluginDetail,
}

/// Result of `plugin/install`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginInstallResponse {
    pub auth_policy: PluginAuthPolicy,
    pub apps_needing_auth: Vec<AppSummary>,
}

/// Result of `plugin/uninstall`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PluginUninstallResponse {}
