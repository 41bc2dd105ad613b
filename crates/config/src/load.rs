//! From files, flags and a thread's overrides to one decoded configuration. Every call reads the files
//! afresh. Whether the values fit together is [`resolve`](crate::resolve)'s question.

use std::collections::BTreeMap;
use std::path::Path;

use loomd_protocol::{AbsolutePathBuf, ConfigLayerSource, ConfigWarningNotification, JsonObject};

use crate::config_toml::Profile;
use crate::file::SourceFile;
use crate::paths::PathBase;
use crate::settings::{Settings, resolve};
use crate::{ConfigError, ConfigToml, FeatureSet, Layer, Overrides, Stack};

/// What a configuration is put together from.
#[derive(Clone, Copy, Debug)]
pub struct LoadRequest<'a> {
    pub home: &'a AbsolutePathBuf,
    /// See [`system_file`](crate::system_file).
    pub system_file: Option<&'a AbsolutePathBuf>,
    /// `$HOME`, which `~` stands for.
    pub user_home: Option<&'a Path>,
    /// The working directory that is asked about, if any: relative paths in overrides start there.
    pub cwd: Option<&'a AbsolutePathBuf>,
    pub flags: &'a Overrides,
    /// The `config` of `thread/start` and its like.
    pub thread: Option<&'a JsonObject>,
    /// Features switched at run time; configuration beats them.
    pub enablement: Option<&'a BTreeMap<String, bool>>,
}

impl<'a> LoadRequest<'a> {
    /// The home and the flags, and nothing else.
    pub fn new(home: &'a AbsolutePathBuf, flags: &'a Overrides) -> Self {
        Self { home, system_file: None, user_home: None, cwd: None, flags, thread: None, enablement: None }
    }
}

/// A configuration in which every value is of its type.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub stack: Stack,
    /// What the layers say together; the selected profile is not applied.
    pub config: ConfigToml,
    /// Before the layers have their say.
    base_features: FeatureSet,
}

impl Loaded {
    /// The selected profile.
    pub fn profile(&self) -> Result<Option<&Profile>, ConfigError> {
        let Some(name) = &self.config.profile else { return Ok(None) };
        let profile = self.config.profiles.get(name);
        profile.map(Some).ok_or_else(|| ConfigError::UnknownProfile(name.clone()))
    }

    /// The features that are on: a profile beats the top level, a higher layer a lower one.
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
        Ok(features)
    }
}

/// Reads and decodes everything.
pub fn load(request: &LoadRequest<'_>) -> Result<Loaded, ConfigError> {
    let system = request.system_file.cloned().map(SourceFile::read).transpose()?;
    let user = SourceFile::read(user_file(request.home))?;
    assemble(request, system, user)
}

/// What a server starts with.
#[derive(Clone, Debug)]
pub struct Start {
    pub loaded: Loaded,
    pub settings: Settings,
    /// At most one: why the files do not count.
    pub warnings: Vec<ConfigWarningNotification>,
}

/// Files that are wrong do not count, and a warning says so. What is wrong without them, in the flags, is
/// an error.
pub fn load_or_default(request: &LoadRequest<'_>) -> Result<Start, ConfigError> {
    let checked = |loaded: Loaded| resolve(&loaded).map(|settings| (loaded, settings));
    let (warnings, (loaded, settings)) = match load(request).and_then(checked) {
        Ok(start) => (Vec::new(), start),
        Err(error) => {
            let system = request.system_file.cloned().map(SourceFile::empty);
            let user = SourceFile::empty(user_file(request.home));
            (vec![error.warning()], assemble(request, system, user).and_then(checked)?)
        }
    };
    Ok(Start { loaded, settings, warnings })
}

fn user_file(home: &AbsolutePathBuf) -> AbsolutePathBuf {
    AbsolutePathBuf::resolve(home, "config.toml")
}

fn assemble(request: &LoadRequest<'_>, system: Option<SourceFile>, user: SourceFile) -> Result<Loaded, ConfigError> {
    let mut layers = Vec::new();
    if let Some(system) = &system {
        layers.push(file_layer(request, system, |file| ConfigLayerSource::System { file })?);
    }
    layers.push(file_layer(request, &user, |file| ConfigLayerSource::User { file })?);
    layers.extend(session_layer(request)?);
    let stack = Stack::new(layers);
    let config = stack.merged().try_into().map_err(|error: toml::de::Error| {
        let mut highest_first = [Some(&user), system.as_ref()].into_iter().flatten();
        ConfigError::Type {
            message: error.message().into(),
            text: error.to_string(),
            place: highest_first.find_map(|file| file.place_of(&error, &file_base(request, file))),
        }
    })?;
    let mut base_features = FeatureSet::default();
    if let Some(enablement) = request.enablement {
        base_features.set_named(|name| enablement.get(name).copied());
    }
    Ok(Loaded { stack, config, base_features })
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

/// `None` when there is nothing to say.
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
