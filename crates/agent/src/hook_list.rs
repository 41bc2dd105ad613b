//! The configured hooks of folders, for `hooks/list`.

use loomd_config::{Feature, Layer, LoadRequest};
use loomd_hooks::{HookDescription, HookProblem, describe, describe_folder};
use loomd_protocol::{
    AbsolutePathBuf, ConfigLayerSource, HookErrorInfo, HookMetadata, HookSource, HookTrustStatus, HooksListEntry,
};
use sha2::{Digest as _, Sha256};

use crate::agent::Agent;
use crate::working_directory::absolute;

impl Agent {
    /// The hooks that are configured for a folder. Those in the tables of `config.toml` are listed, and do not run until
    /// they are trusted; those of a `hooks.json` run with the feature.
    pub fn list_hooks(&self, cwd: &str) -> HooksListEntry {
        let mut entry =
            HooksListEntry { cwd: cwd.to_owned(), hooks: Vec::new(), warnings: Vec::new(), errors: Vec::new() };
        let sources = self.sources();
        let loaded = absolute(cwd).map_err(|refusal| refusal.to_string()).and_then(|cwd| {
            let request = LoadRequest { cwd: Some(&cwd), ..sources.request() };
            loomd_config::load(&request).map_err(|error| error.to_string())
        });
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(message) => {
                entry.errors.push(HookErrorInfo { path: cwd.to_owned(), message });
                return entry;
            }
        };
        let runs = loaded.features().is_ok_and(|features| features.enabled(Feature::CodexHooks));
        for layer in loaded.stack.layers() {
            let Some(folder) = layer.config_folder() else { continue };
            let files = if runs { HookTrustStatus::Trusted } else { HookTrustStatus::Untrusted };
            add(&mut entry, layer, files, describe_folder(folder));
            if let (Some(path), Some(hooks)) = (layer.file(), layer.json_table("hooks")) {
                add(&mut entry, layer, HookTrustStatus::Untrusted, describe(&path, &hooks));
            }
        }
        entry
    }
}

fn add(
    entry: &mut HooksListEntry,
    layer: &Layer,
    trust_status: HookTrustStatus,
    (found, problems): (Vec<HookDescription>, Vec<HookProblem>),
) {
    let source = match layer.source {
        ConfigLayerSource::System { .. } => HookSource::System,
        ConfigLayerSource::User { .. } => HookSource::User,
        ConfigLayerSource::Project { .. } => HookSource::Project,
        _ => HookSource::Unknown,
    };
    for hook in found {
        let Some(source_path) = AbsolutePathBuf::new(&hook.source) else { continue };
        entry.hooks.push(HookMetadata {
            key: hook.key(),
            event_name: hook.event,
            handler_type: hook.handler_type,
            command: hook.command,
            r#async: hook.detached,
            matcher: hook.matcher,
            timeout_sec: hook.timeout_seconds,
            status_message: hook.status_message,
            source,
            source_path,
            plugin_id: None,
            display_order: i64::try_from(entry.hooks.len()).unwrap_or(i64::MAX),
            enabled: true,
            is_managed: false,
            current_hash: format!("sha256:{:x}", Sha256::digest(hook.definition)),
            trust_status,
        });
    }
    entry.errors.extend(
        problems.into_iter().map(|problem| HookErrorInfo {
            path: problem.path.to_string_lossy().into_owned(),
            message: problem.message,
        }),
    );
}
