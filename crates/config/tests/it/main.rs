//! The crate's public API: a home on disk, flags, a thread's overrides, and the resulting configuration.

#![allow(clippy::unwrap_used)]

mod any_input;
mod documented;
mod external_agent;
mod loading;
mod projects;
mod reading;
mod settings;
mod values;
mod writing;

use std::collections::BTreeMap;
use std::fs;

use loomd_config::{ConfigError, Enablement, LoadRequest, LoadedConfig, Overrides, Settings, StartConfig};
use loomd_protocol::{AbsolutePathBuf, JsonObject, JsonValue};
use tempfile::TempDir;

/// A home with files, flags and overrides.
pub struct Fixture {
    _dir: TempDir,
    pub root: AbsolutePathBuf,
    pub home: AbsolutePathBuf,
    system: AbsolutePathBuf,
    flags: Overrides,
    thread: JsonObject,
    enablement: Enablement,
}

/// A home whose `config.toml` has this text.
pub fn user(text: impl AsRef<[u8]>) -> Fixture {
    let fixture = bare();
    fs::write(fixture.home.join("config.toml"), text).unwrap();
    fixture
}

/// A home without a `config.toml`.
pub fn bare() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let root = AbsolutePathBuf::new(dir.path().canonicalize().unwrap()).unwrap();
    let home = AbsolutePathBuf::resolve(&root, "home");
    fs::create_dir(&home).unwrap();
    let system = AbsolutePathBuf::resolve(&root, "system.toml");
    let (flags, thread, enablement) = Default::default();
    Fixture { _dir: dir, root, home, system, flags, thread, enablement }
}

impl Fixture {
    pub fn system(self, text: &str) -> Self {
        fs::write(&self.system, text).unwrap();
        self
    }

    pub fn flags(mut self, flags: &[&str]) -> Self {
        let flags: Vec<_> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        self.flags = Overrides::parse(&flags, &[], &[]).unwrap();
        self
    }

    pub fn thread(mut self, config: JsonValue) -> Self {
        let JsonValue::Object(config) = config else { panic!("not an object: {config}") };
        self.thread = config;
        self
    }

    pub fn enablement(self, name: &str, enabled: bool) -> Self {
        self.enablement.set(&BTreeMap::from([(name.to_owned(), enabled)])).unwrap();
        self
    }

    pub fn request(&self) -> LoadRequest<'_> {
        LoadRequest {
            system_file: Some(&self.system),
            user_home: Some(&self.root),
            thread: Some(&self.thread),
            enablement: Some(&self.enablement),
            ..LoadRequest::new(&self.home, &self.flags)
        }
    }

    pub fn load(&self) -> Result<LoadedConfig, ConfigError> {
        loomd_config::load(&self.request())
    }

    pub fn settings(&self) -> Result<Settings, ConfigError> {
        loomd_config::resolve(&self.load()?)
    }

    pub fn start(&self) -> Result<StartConfig, ConfigError> {
        loomd_config::load_or_default(&self.request())
    }

    /// Replaces the path of the home by `<home>`.
    pub fn neutral(&self, text: &str) -> String {
        text.replace(self.home.to_str().unwrap(), "<home>").replace(self.root.to_str().unwrap(), "<root>")
    }

    /// The message of the error.
    pub fn error(&self) -> String {
        match self.settings() {
            Ok(settings) => panic!("no error: {settings:?}"),
            Err(error) => self.neutral(&error.to_string()),
        }
    }
}
