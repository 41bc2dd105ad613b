//! `[profiles.<name>]`: values that override the same keys at the top level when the profile is selected.

use std::collections::BTreeMap;

use loomd_protocol::{
    AbsolutePathBuf, AnalyticsConfig, ApprovalsReviewer, AskForApproval, Personality, ReasoningEffort,
    ReasoningSummary, SandboxMode, ServiceTier, Verbosity, WebSearchMode,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigToml, Tools, Windows, null_when_empty};

/// `replaced` keys override the whole value; `merged` keys override its members.
macro_rules! profile {
    (replaced { $($key:ident: $type:ty,)* } merged { $($(#[$attribute:meta])* $merged:ident: $merged_type:ty,)* }) => {
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default)]
        pub struct Profile {
            $(#[doc = concat!("Overrides `", stringify!($key), "`.")] pub $key: Option<$type>,)*
            $(#[doc = concat!("Overrides members of `", stringify!($merged), "`.")] $(#[$attribute])* pub $merged: $merged_type,)*
        }

        impl Profile {
            fn replace(&self, config: &mut ConfigToml) {
                $(if let Some(value) = &self.$key {
                    config.$key = Some(value.clone());
                })*
            }
        }
    };
}

profile! {
    replaced {
        model: String,
        model_provider: String,
        service_tier: ServiceTier,
        approval_policy: AskForApproval,
        approvals_reviewer: ApprovalsReviewer,
        sandbox_mode: SandboxMode,
        model_reasoning_effort: ReasoningEffort,
        plan_mode_reasoning_effort: ReasoningEffort,
        model_reasoning_summary: ReasoningSummary,
        model_verbosity: Verbosity,
        model_catalog_json: AbsolutePathBuf,
        personality: Personality,
        chatgpt_base_url: String,
        model_instructions_file: AbsolutePathBuf,
        experimental_instructions_file: AbsolutePathBuf,
        experimental_compact_prompt_file: AbsolutePathBuf,
        js_repl_node_path: AbsolutePathBuf,
        js_repl_node_module_dirs: Vec<AbsolutePathBuf>,
        zsh_path: AbsolutePathBuf,
        tools_view_image: bool,
        include_apply_patch_tool: bool,
        experimental_use_freeform_apply_patch: bool,
        experimental_use_unified_exec_tool: bool,
        web_search: WebSearchMode,
        analytics: AnalyticsConfig,
        windows: Windows,
        oss_provider: String,
    }
    merged {
        tools: Option<Tools>,
        #[serde(serialize_with = "null_when_empty")]
        features: BTreeMap<String, bool>,
    }
}

impl Profile {
    /// Overrides the top level with this profile.
    pub(crate) fn apply(&self, config: &mut ConfigToml) {
        self.replace(config);
        if let Some(tools) = &self.tools {
            let top = config.tools.get_or_insert_default();
            top.web_search = tools.web_search.clone().or(top.web_search.take());
            top.view_image = tools.view_image.or(top.view_image);
        }
        config.features.extend(self.features.iter().map(|(name, enabled)| (name.clone(), *enabled)));
    }
}
