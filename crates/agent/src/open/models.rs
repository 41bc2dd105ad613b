//! Providers and the catalogue of models. Threads with the same provider share its connections and credentials.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use loomd_config::config_toml::ModelProvider;
use loomd_model::{Catalogue, CatalogueError, Credentials, Provider, Scenario};
use loomd_protocol::AbsolutePathBuf;
use parking_lot::Mutex;

use crate::replay::ReplaySession;

/// Providers that are kept; the cache is cleared beyond this. Configurations name a handful.
const MAX_PROVIDERS: usize = 64;

/// The options of an agent that replays one stored thread.
pub struct Replay {
    /// The directory that takes the place of the home directory.
    pub home: PathBuf,
    pub replayed: Arc<ReplaySession>,
    /// The answers of every model.
    pub scenario: Arc<Scenario>,
    /// The retries of a broken stream; `None`: as configured.
    pub retries: Option<u64>,
}

/// The providers in use and the models that are known.
pub(crate) struct Models {
    providers: Mutex<Vec<(String, ModelProvider, Arc<Provider>)>>,
    bundled: OnceLock<Arc<Catalogue>>,
    /// The credentials of the user's account.
    account: Option<Arc<dyn Credentials>>,
    /// In a replay, the answers of all providers, with the retries of streams.
    scenario: Option<(Arc<Scenario>, Option<u64>)>,
}

impl Models {
    pub fn new(account: Option<Arc<dyn Credentials>>, replay: Option<&Replay>) -> Self {
        let scenario = replay.map(|replay| (Arc::clone(&replay.scenario), replay.retries));
        Self { providers: Mutex::default(), bundled: OnceLock::new(), account, scenario }
    }

    /// Returns the provider for a configuration; the same one for the same configuration.
    pub fn provider(&self, id: &str, config: &ModelProvider) -> Arc<Provider> {
        let mut providers = self.providers.lock();
        let known = providers.iter().find(|(known, with, _)| known == id && with == config);
        if let Some((_, _, provider)) = known {
            return Arc::clone(provider);
        }
        let provider = match &self.scenario {
            Some((scenario, retries)) => {
                let stream_max_retries = retries.or(config.stream_max_retries);
                let config = ModelProvider { stream_max_retries, ..config.clone() };
                Provider::scripted(id, &config, Arc::clone(scenario))
            }
            None => Provider::new(id, config, &|name| std::env::var(name).ok(), self.account.clone()),
        };
        if providers.len() >= MAX_PROVIDERS {
            providers.clear();
        }
        providers.push((id.into(), config.clone(), Arc::clone(&provider)));
        provider
    }

    /// Returns the models of `file` or, without one, the bundled models.
    pub fn catalogue(&self, file: Option<&AbsolutePathBuf>) -> Result<Arc<Catalogue>, CatalogueError> {
        match file {
            Some(file) => Catalogue::from_json_file(file).map(Arc::new),
            None => Ok(Arc::clone(self.bundled.get_or_init(|| Arc::new(Catalogue::bundled())))),
        }
    }
}
