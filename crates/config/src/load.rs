//! Loads files, flags and a thread's overrides into one decoded configuration. Every call reads the files anew.
//! [`resolve`](crate::resolve) checks whether the values fit together.

use std::path::{Path, PathBuf};

use loomd_protocol::{AbsolutePathBuf, ConfigLayerSource, ConfigWarningNotification, JsonObject, SandboxPolicy};

use crate::config_toml::{Profile, TrustLevel};
use crate::file::SourceFile;
use crate::paths::PathBase;
use crate::permissions::{ProfileRules, SelectedProfile, select};
use crate::project::ProjectTree;
use crate::requirements::{self, ParseError};
use crate::settings::{Settings, resolve};
use crate::{
    CloudError, ConfigError, ConfigToml, Enablement, FeatureSet, Layer, LayerStack, ManagedRequirements, Overrides,
    RequirementSource, Requirements, warnings,
};

/// The sources of a configuration.
#[derive(Clone, Copy, Debug)]
pub struct LoadRequest<'a> {
    pub home: &'a AbsolutePathBuf,
    /// See [`system_file`](crate::system_file). The administrator's requirements are next to it.
    pub system_file: Option<&'a AbsolutePathBuf>,
    /// The organisation's requirements.
    pub managed: Option<&'a ManagedRequirements>,
    /// `$HOME`, for `~`.
    pub user_home: Option<&'a Path>,
    /// The working directory, if any: its project contributes layers, and relative paths in overrides start there.
    pub cwd: Option<&'a AbsolutePathBuf>,
    pub flags: &'a Overrides,
    /// The `config` of `thread/start` and similar requests.
    pub thread: Option<&'a JsonObject>,
    /// Features switched at run time; configuration overrides them.
    pub enablement: Option<&'a Enablement>,
}

impl<'a> LoadRequest<'a> {
    /// The home and the flags only.
    pub fn new(home: &'a AbsolutePathBuf, flags: &'a Overrides) -> Self {
        Self {
            home,
            system_file: None,
            managed: None,
            user_home: None,
            cwd: None,
            flags,
            thread: None,
            enablement: None,
        }
    }

    /// The file that the user may edit.
    pub fn user_file(&self) -> AbsolutePathBuf {
        AbsolutePathBuf::resolve(self.home, "config.toml")
    }

    fn beside_system_file(&self, name: &str) -> Option<AbsolutePathBuf> {
        self.system_file.map(|file| AbsolutePathBuf::resolve(&AbsolutePathBuf::resolve(file, ".."), name))
    }
}

/// A configuration in which every value has its type.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    pub stack: LayerStack,
    /// The merged layers, without the selected profile.
    pub config: ConfigToml,
    pub requirements: Requirements,
    /// The user's trust in the project of the working directory.
    pub trust: Option<TrustLevel>,
    /// The folders of the project, from its root to the working directory. Empty without a working directory.
    pub project_folders: Vec<AbsolutePathBuf>,
    /// The features before the layers are applied.
    base_features: FeatureSet,
    /// `$HOME`, for `~`.
    user_home: Option<PathBuf>,
}

impl LoadedConfig {
    /// Returns the selected profile.
    pub fn profile(&self) -> Result<Option<&Profile>, ConfigError> {
        let Some(name) = &self.config.profile else { return Ok(None) };
        let profile = self.config.profiles.get(name);
        profile.map(Some).ok_or_else(|| ConfigError::UnknownProfile(name.clone()))
    }

    /// Returns the permission profile in force; `None` if a sandbox mode is. The highest layer that sets either
    /// decides; a layer that sets both selects the profile.
    pub(crate) fn permissions(
        &self,
        warnings: &mut Vec<ConfigWarningNotification>,
    ) -> Result<Option<SelectedProfile>, ConfigError> {
        let mut in_force = false;
        for layer in self.stack.enabled() {
            let selected = self.config.profile.as_ref();
            let profile = selected.and_then(|name| layer.table.get("profiles")?.get(name)?.get("sandbox_mode"));
            if layer.table.contains_key("default_permissions") {
                in_force = true;
            } else if layer.table.contains_key("sandbox_mode") {
                in_force = false;
            }
            in_force &= profile.is_none();
        }
        let name = match &self.config.default_permissions {
            Some(name) if in_force => name,
            _ => return Ok(None),
        };
        select(name, &self.config.permissions, self.user_home.as_deref(), warnings).map(Some)
    }

    /// Returns the policy that comes closest to a configured permission profile in a folder.
    pub fn permission_policy(&self, id: &str, cwd: &Path) -> Result<SandboxPolicy, ConfigError> {
        match select(id, &self.config.permissions, self.user_home.as_deref(), &mut Vec::new())?.rules {
            ProfileRules::Configured(rules) => rules.policy(cwd),
            ProfileRules::BuiltIn(_) => Err(ConfigError::Invalid(format!("`{id}` is not a configured profile"))),
        }
    }

    /// Returns the enabled features. A requirement overrides everything, a profile the top level, a higher layer a
    /// lower one.
    pub fn features(&self) -> Result<FeatureSet, ConfigError> {
        self.profile()?;
        let mut features = self.base_features;
        for layer in self.stack.enabled() {
            features.set_from(&layer.table);
        }
        if let Some(name) = &self.config.profile {
            for layer in self.stack.enabled() {
                let profile = layer.table.get("profiles").and_then(|profiles| profiles.get(name)?.as_table());
                if let Some(profile) = profile {
                    features.set_from(profile);
                }
            }
        }
        features.settle();
        self.requirements.pin(&mut features);
        Ok(features)
    }
}

/// Reads and decodes all sources.
pub fn load(request: &LoadRequest<'_>) -> Result<LoadedConfig, ConfigError> {
    let system = request.system_file.cloned().map(SourceFile::read).transpose()?;
    assemble(request, SourceFiles { system, user: SourceFile::read(request.user_file())?, others: true })
}

/// Loads the configuration with another user file.
pub(crate) fn load_with(request: &LoadRequest<'_>, user: SourceFile) -> Result<LoadedConfig, ConfigError> {
    let system = request.system_file.cloned().map(SourceFile::read).transpose()?;
    assemble(request, SourceFiles { system, user, others: true })
}

/// The configuration that a server starts with.
#[derive(Clone, Debug)]
pub struct StartConfig {
    pub loaded: LoadedConfig,
    pub settings: Settings,
    /// Notifications for clients.
    pub warnings: Vec<ConfigWarningNotification>,
}

/// Loads the configuration and ignores invalid files, with a warning. What is invalid without them, in the flags, is an
/// error.
pub fn load_or_default(request: &LoadRequest<'_>) -> Result<StartConfig, ConfigError> {
    let checked = |loaded: LoadedConfig| resolve(&loaded).map(|settings| (loaded, settings));
    let (mut warnings, (loaded, settings)) = match load(request).and_then(checked) {
        Ok(start) => (Vec::new(), start),
        Err(error) => {
            let system = request.system_file.cloned().map(SourceFile::empty);
            let files = SourceFiles { system, user: SourceFile::empty(request.user_file()), others: false };
            // Requirements are unknown then, too; requests that need them fail.
            (vec![error.warning()], assemble(request, files).and_then(checked)?)
        }
    };
    warnings.extend(warnings::disabled_projects(&loaded.stack));
    warnings.extend(settings.warnings.iter().cloned());
    Ok(StartConfig { loaded, settings, warnings })
}

/// The files of the user and the system.
struct SourceFiles {
    system: Option<SourceFile>,
    user: SourceFile,
    /// Whether files of projects and administrators are read, too.
    others: bool,
}

fn assemble(request: &LoadRequest<'_>, files: SourceFiles) -> Result<LoadedConfig, ConfigError> {
    let SourceFiles { system, user, others } = files;
    let mut layers = Vec::new();
    if let Some(system) = &system {
        layers.push(file_layer(request, system, |file| ConfigLayerSource::System { file })?);
    }
    layers.push(user_layer(request, &user)?);
    layers.extend(session_layer(request)?);
    let mut sources = vec![user];
    sources.extend(system);

    let (mut trust, mut project_folders) = (None, Vec::new());
    if let Some(cwd) = request.cwd {
        let settings = LayerStack::new(layers.clone()).merged();
        let project = ProjectTree::find(cwd, &settings);
        trust = project.trust(&settings);
        project_folders = project.folders();
        if others {
            for found in project.layers(request.home, request.user_home, &settings)? {
                // The nearest first.
                sources.splice(0..0, found.file);
                layers.push(found.layer);
            }
        }
    }
    let mut requirements = if others { required(request)? } else { Requirements::default() };
    let managed = request.beside_system_file("managed_config.toml").filter(|file| others && file.exists());
    if let Some(managed) = managed {
        let file = SourceFile::read(managed.clone())?;
        let layer = file_layer(request, &file, |file| ConfigLayerSource::LegacyManagedConfigTomlFromFile { file })?;
        requirements.add(requirements::legacy(&layer.table, &RequirementSource::File(managed)));
        layers.push(layer);
        sources.insert(0, file);
    }

    let stack = LayerStack::new(layers);
    let config = stack.merged().try_into().map_err(|error: toml::de::Error| ConfigError::Type {
        message: error.message().into(),
        text: error.to_string(),
        location: sources.iter().find_map(|file| file.location_of(&error, &file_base(request, file))),
    })?;
    let mut base_features = FeatureSet::default();
    if let Some(enablement) = request.enablement {
        let enablement = enablement.get();
        base_features.set_named(|name| enablement.get(name).copied());
    }
    let user_home = request.user_home.map(Path::to_path_buf);
    Ok(LoadedConfig { stack, config, requirements, trust, project_folders, base_features, user_home })
}

/// Loads the organisation's requirements, then those of the machine's administrator.
fn required(request: &LoadRequest<'_>) -> Result<Requirements, ConfigError> {
    let mut all = Requirements::default();
    if let Some(managed) = request.managed {
        match &*managed.get() {
            Ok(None) => {}
            Ok(Some(text)) => {
                let parsed = requirements::parse(text, RequirementSource::Cloud).map_err(|error| match error {
                    ParseError::Syntax(detail) => CloudError { code: "Parse", detail, status: None }.into(),
                    ParseError::Contradiction(message) => ConfigError::Requirements(message),
                });
                all.add(parsed?);
            }
            Err(error) => return Err(error.clone().into()),
        }
    }
    if let Some(path) = request.beside_system_file("requirements.toml").filter(|file| file.exists()) {
        let file = SourceFile::read(path.clone())?;
        let parsed = requirements::parse(file.text(), RequirementSource::File(path.clone()));
        all.add(parsed.map_err(|error| ConfigError::Requirements(format!("{}: {error}", path.display())))?);
    }
    Ok(all)
}

/// The user's layer, decoded no further than its table.
pub(crate) fn user_layer(request: &LoadRequest<'_>, file: &SourceFile) -> Result<Layer, ConfigError> {
    file_layer(request, file, |file| ConfigLayerSource::User { file, profile: None })
}

fn file_layer(
    request: &LoadRequest<'_>,
    file: &SourceFile,
    source: impl FnOnce(AbsolutePathBuf) -> ConfigLayerSource,
) -> Result<Layer, ConfigError> {
    let mut table = file.table()?;
    file_base(request, file).resolve(&mut table);
    Ok(Layer::new(source(file.path.clone()), table))
}

/// Returns `None` without flags and overrides.
fn session_layer(request: &LoadRequest<'_>) -> Result<Option<Layer>, ConfigError> {
    let mut table = match request.thread {
        Some(config) => request.flags.with_thread(config)?.into_table(),
        None => request.flags.table().clone(),
    };
    let folder = request.cwd.unwrap_or(request.home).clone();
    PathBase { folder, user_home: request.user_home }.resolve(&mut table);
    Ok((!table.is_empty()).then(|| Layer::new(ConfigLayerSource::SessionFlags, table)))
}

fn file_base<'a>(request: &LoadRequest<'a>, file: &SourceFile) -> PathBase<'a> {
    PathBase { folder: AbsolutePathBuf::resolve(&file.path, ".."), user_home: request.user_home }
}
