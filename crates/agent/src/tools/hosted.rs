//! Tools that the provider runs itself. They are only offered: a call of them never arrives here.

use loomd_config::Feature;
use loomd_model::ToolSpec;
use loomd_protocol::{InputModality, SandboxPolicy, WebSearchMode};

use super::cx::ToolCx;
use super::scope::{Role, ToolScope};
use super::tool::{Tool, ToolFuture, ToolName};
use crate::tool_call::Call;

pub(super) struct WebSearch;

impl Tool for WebSearch {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("web_search")
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        let config = &scope.turn.profile.config.config;
        let full_access = matches!(scope.turn.settings.sandbox, SandboxPolicy::DangerFullAccess);
        let live = match config.web_search.unwrap_or(WebSearchMode::Cached) {
            WebSearchMode::Disabled => return None,
            WebSearchMode::Live => true,
            WebSearchMode::Cached => full_access,
        };
        if scope.role == Role::Reviewer {
            return None;
        }
        let settings = config.tools.as_ref().and_then(|tools| tools.web_search.as_ref());
        Some(ToolSpec::WebSearch {
            external_web_access: live,
            filters: settings
                .and_then(|settings| settings.allowed_domains.as_ref())
                .map(|domains| serde_json::json!({ "allowed_domains": domains })),
            user_location: settings.and_then(|settings| settings.location.as_ref()).and_then(location),
            search_context_size: settings
                .and_then(|settings| settings.context_size.as_ref())
                .and_then(|size| serde_json::to_value(size).ok()),
            search_content_types: None,
        })
    }

    fn callable(&self, _: &ToolScope<'_>) -> bool {
        false
    }

    fn run<'a>(&'a self, _: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        unsupported(call)
    }
}

fn location(location: &impl serde::Serialize) -> Option<serde_json::Value> {
    let mut value = serde_json::to_value(location).ok()?;
    let object = value.as_object_mut()?;
    object.retain(|_, value| !value.is_null());
    object.insert("type".into(), "approximate".into());
    Some(value)
}

pub(super) struct ImageGeneration;

impl Tool for ImageGeneration {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("image_generation")
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        let wanted =
            scope.has(Feature::ImageGeneration) && scope.turn.model.input_modalities.contains(&InputModality::Image);
        wanted.then(|| ToolSpec::ImageGeneration { output_format: "png".into() })
    }

    fn callable(&self, _: &ToolScope<'_>) -> bool {
        false
    }

    fn run<'a>(&'a self, _: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        unsupported(call)
    }
}

fn unsupported(call: &Call) -> ToolFuture<'_> {
    Box::pin(std::future::ready(Err(call.unsupported())))
}
