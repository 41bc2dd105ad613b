//! [`Home`]: temporary folders for a server: its home with configuration, a user home, and a working directory.

use std::path::PathBuf;

use tempfile::TempDir;
use toml::{Table, Value};

use crate::ScriptedModel;

pub struct Home {
    root: PathBuf,
    _dir: TempDir,
}

impl Home {
    /// A home without a configuration.
    pub fn empty() -> Self {
        let dir = TempDir::with_prefix("loomd-").expect("a temporary folder can be created");
        let root = dir.path().canonicalize().expect("a new folder has a real path");
        let home = Self { root, _dir: dir };
        for folder in [home.path(), home.user(), home.work()] {
            std::fs::create_dir(&folder).expect("a folder can be created in a new folder");
        }
        home
    }

    /// A home whose only model is this one: no retries, no approvals, read-only sandbox.
    pub fn new(model: &ScriptedModel) -> Self {
        Self::empty().with(&format!(
            r#"
            model = "scripted-model"
            model_provider = "scripted"
            approval_policy = "never"
            sandbox_mode = "read-only"

            [model_providers.scripted]
            name = "Scripted"
            base_url = "{}"
            wire_api = "responses"
            request_max_retries = 0
            stream_max_retries = 0
            "#,
            model.base_url()
        ))
    }

    /// Merges this TOML into the configuration: its values replace existing ones.
    pub fn with(self, toml: &str) -> Self {
        let path = self.path().join("config.toml");
        let mut config = match std::fs::read_to_string(&path) {
            Ok(text) => parse(&text),
            Err(_) => Table::new(),
        };
        merge(&mut config, parse(toml));
        std::fs::write(&path, config.to_string()).expect("config.toml can be written");
        self
    }

    /// Writes a file below [`path`](Self::path), and creates its folders.
    pub fn write(&self, file: &str, text: &str) -> PathBuf {
        let path = self.path().join(file);
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder can be created");
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        path
    }

    /// The server's home, `CODEX_HOME`.
    pub fn path(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The user's home, `HOME`: login shells must not read the profile of the user who runs the test.
    pub fn user(&self) -> PathBuf {
        self.root.join("user")
    }

    /// An empty folder, the server's working directory.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// The path of the socket of [`Launch::unix`](crate::Launch::unix).
    pub(crate) fn socket(&self) -> PathBuf {
        self.root.join("socket")
    }
}

fn parse(toml: &str) -> Table {
    toml.parse().unwrap_or_else(|error| panic!("the test's configuration is not TOML: {error}\n{toml}"))
}

fn merge(under: &mut Table, over: Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => merge(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}
