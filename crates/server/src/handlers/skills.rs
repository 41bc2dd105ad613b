//! `skills/*`

use std::path::PathBuf;
use std::sync::Arc;

use loomd_agent::{absolute, working_directory};
use loomd_config::{LayerStack, SkillRuleTarget};
use loomd_protocol::{
    AbsolutePathBuf, RpcError, ServerNotification, SkillScope, SkillsChangedNotification, SkillsConfigWriteParams,
    SkillsConfigWriteResponse, SkillsExtraRootsSetParams, SkillsExtraRootsSetResponse, SkillsListEntry,
    SkillsListParams, SkillsListResponse, call,
};
use loomd_skills::{SkillRules, SkillSet};
use tokio::task::spawn_blocking;

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `skills/list`: the skills of working directories, as they are on disk.
pub(crate) async fn list(cx: &Context, params: SkillsListParams) -> Handled<call::SkillsList> {
    let extra_roots = params.per_cwd_extra_user_roots.unwrap_or_default();
    if let Some(relative) =
        extra_roots.iter().flat_map(|extra| &extra.extra_user_roots).find(|root| AbsolutePathBuf::new(root).is_none())
    {
        return Err(RpcError::invalid_request(format!(
            "skills/list perCwdExtraUserRoots extraUserRoots paths must be absolute: {relative}"
        )));
    }
    let mut folders: Vec<(String, AbsolutePathBuf)> = Vec::new();
    for cwd in params.cwds {
        let folder = absolute(&cwd).map_err(wire_error)?;
        folders.push((cwd, folder));
    }
    if folders.is_empty() {
        let here = working_directory().map_err(wire_error)?;
        folders.push((here.to_string_lossy().into_owned(), here));
    }
    let extensions = Arc::clone(cx.app.agent.extensions());
    let found = spawn_blocking(move || {
        let entry = |(cwd, folder): (String, AbsolutePathBuf)| {
            let extra = extra_roots.iter().filter(|extra| extra.cwd == cwd).flat_map(|extra| &extra.extra_user_roots);
            let extra: Vec<PathBuf> = extra.map(PathBuf::from).collect();
            let SkillSet { skills, errors } = extensions.skills(&folder, None, &extra)?;
            Ok(SkillsListEntry { cwd, skills: skills.iter().map(|skill| skill.to_wire()).collect(), errors })
        };
        folders.into_iter().map(entry).collect::<Result<Vec<_>, loomd_config::ConfigError>>()
    });
    let found = found.await.map_err(|error| RpcError::internal(format!("the search for skills failed: {error}")))?;
    let data = found.map_err(|error| RpcError::internal(format!("failed to reload config: {error}")))?;
    answer(SkillsListResponse { data })
}

/// `skills/extraRoots/set`: everyone is notified before the answer.
pub(crate) async fn set_extra_roots(
    cx: &Context,
    params: SkillsExtraRootsSetParams,
) -> Handled<call::SkillsExtraRootsSet> {
    cx.app.agent.extensions().set_extra_roots(params.extra_roots);
    cx.app.broadcast(ServerNotification::SkillsChanged(SkillsChangedNotification {})).await;
    answer(SkillsExtraRootsSetResponse {})
}

/// `skills/config/write`: the result says whether the skills are enabled now, all rules considered.
pub(crate) async fn write_config(cx: &Context, params: SkillsConfigWriteParams) -> Handled<call::SkillsConfigWrite> {
    let SkillsConfigWriteParams { path, name, enabled } = params;
    let name = name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let target = match (path, name) {
        (Some(path), None) => SkillRuleTarget::Path(path),
        (None, Some(name)) => SkillRuleTarget::Name(name),
        _ => return Err(RpcError::invalid_params("skills/config/write requires exactly one of path or name")),
    };
    let sources = &cx.app.sources;
    let is_enabled = |stack: &LayerStack| is_enabled(&target, &SkillRules::of(stack));
    loomd_config::write_skill_rule(&sources.request(), &target, enabled, &is_enabled)
        .map_err(|error| RpcError::internal(format!("failed to update skill settings: {error}")))?;
    let loaded = loomd_config::load(&sources.request());
    let effective = loaded.map_or(enabled, |loaded| is_enabled(&loaded.stack));
    answer(SkillsConfigWriteResponse { effective_enabled: effective })
}

/// Whether the rules enable a skill. That of a path is also found by rules about its name.
fn is_enabled(target: &SkillRuleTarget, rules: &SkillRules) -> bool {
    match target {
        SkillRuleTarget::Name(name) => rules.is_enabled(name, None),
        SkillRuleTarget::Path(path) => {
            let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
            let skill = loomd_skills::read_skill(&real, SkillScope::User).ok().flatten();
            rules.is_enabled(skill.as_ref().map_or("", |skill| &skill.name), Some(&real))
        }
    }
}
