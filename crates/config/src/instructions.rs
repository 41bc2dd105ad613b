//! The user's standing instructions: `AGENTS.md` of the home, and those of the project from its root down to
//! the working directory. Trust does not matter: they are text, and say nothing about what is allowed.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use loomd_protocol::{AbsolutePathBuf, ConfigLayerSource};
use toml::Table;

use crate::project::Project;
use crate::stack::merge;
use crate::{LoadRequest, Loaded};

const NAME: &str = "AGENTS.md";
/// Counts in place of the other.
const OVERRIDE: &str = "AGENTS.override.md";

/// Between what is said for all projects and what is said for this one.
const SEPARATOR: &str = "\n\n--- project-doc ---\n\n";

/// The home has no budget, but there is a limit to what makes sense.
const MAX_GLOBAL: u64 = 1 << 20;

/// What the user wants every thread to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// From the home.
    pub global: Option<String>,
    /// From the project; cut at `project_doc_max_bytes`.
    pub project: Option<String>,
}

impl Instructions {
    /// As of now, for a thread that starts in `request.cwd`.
    pub fn read(request: &LoadRequest<'_>, loaded: &Loaded) -> Self {
        let global = [OVERRIDE, NAME].iter().find_map(|name| {
            let text = read_up_to(&request.home.join(name), MAX_GLOBAL)?;
            let text = text.trim();
            (!text.is_empty()).then(|| text.to_owned())
        });
        Self { global, project: request.cwd.and_then(|cwd| project(cwd, loaded)) }
    }

    /// Everything, in one text.
    pub fn text(&self) -> Option<String> {
        match (&self.global, &self.project) {
            (Some(global), Some(project)) => Some(format!("{global}{SEPARATOR}{project}")),
            (one, other) => one.as_ref().or(other.as_ref()).cloned(),
        }
    }
}

fn project(cwd: &AbsolutePathBuf, loaded: &Loaded) -> Option<String> {
    let cwd = cwd.canonicalize().ok().and_then(AbsolutePathBuf::new).unwrap_or_else(|| cwd.clone());
    // A project does not say where it begins.
    let mut settings = Table::new();
    for layer in loaded.stack.enabled().filter(|layer| !matches!(layer.source, ConfigLayerSource::Project { .. })) {
        merge(&mut settings, &layer.table);
    }
    let fallbacks = loaded.config.project_doc_fallback_filenames.iter().flatten().map(String::as_str);
    let names: Vec<&str> = [OVERRIDE, NAME].into_iter().chain(fallbacks.filter(|name| !name.is_empty())).collect();
    let mut budget = loaded.config.project_doc_max_bytes() as u64;
    let mut parts = Vec::new();
    for folder in Project::find(&cwd, &settings).folders() {
        let found = names.iter().map(|name| folder.join(name)).find(|path| path.is_file());
        let Some(text) = found.filter(|_| budget > 0).and_then(|path| read_up_to(&path, budget)) else { continue };
        if !text.trim().is_empty() {
            budget -= budget.min(text.len() as u64);
            parts.push(text);
        }
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// `None` when it cannot be read. A cut character, and bytes that are no text, become marks.
fn read_up_to(path: &Path, limit: u64) -> Option<String> {
    path.is_file().then_some(())?;
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
